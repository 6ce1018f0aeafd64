#include "../events.h"
#include "trace/integrity/checks.h"
#include "trace/integrity/damage.h"

/* A trace of 2.7 of three chunks of a thread, with a definition before them; its last one was
 * not sealed. */
static void compose_checked(struct compose *c)
{
	struct trace_header *h;
	uint64_t sum;
	size_t from;

	compose_begin(c);
	compose_chunk(c, TRACE_CHUNK_DEFINITIONS, 0, 0, 10, 65536);
	from = c->at;
	for (unsigned i = 0; i < 24; i++)
		put_byte(c, i == 0		? 24
			    : i == 4		? TRACE_DEF_INFO
			    : i == 8 || i == 10 ? 1
			    : i == 9		? 'k'
						: 0);
	*(uint32_t *)(c->bytes + from + 20) = checks_definition(c->bytes + from, 24);
	c->bytes[from + 6] = 1;
	compose_head(c)->committed = 24;
	compose_head(c)->check = checks_open(c->bytes + c->chunk);
	for (uint32_t n = 0; n < 3; n++) {
		compose_chunk(c, TRACE_CHUNK_EVENTS, 1, n, 100 + 1000 * n, 65536);
		compose_head(c)->check = checks_open(c->bytes + c->chunk);
		sum = 0;
		for (uint64_t i = 0; i < 50; i++) {
			from = c->at;
			put_alloc(c, 101 + 1000 * n + i, 0x1000 * (n + 1) + 16 * i, 8, 0);
			sum += checks_words(
			    c->bytes + c->chunk + 64, c->bytes + from, c->bytes + c->at, sum);
		}
		compose_head(c)->committed = (uint32_t)(c->at - c->chunk - 64);
		compose_head(c)->checksum = sum;
		if (n == 2)
			continue;
		compose_seal(c, xxh64_of(c->bytes + c->chunk + 64, compose_head(c)->committed));
		compose_head(c)->check = checks_sealed(c->bytes + c->chunk, NULL, 0);
	}
	compose_end(c);
	h = compose_header(c);
	h->major = 2;
	h->minor = 7;
	h->end_how = 0;
	h->chunk_bytes = 4 * 65536;
	checks_page(c->bytes);
}

/* Read it all, and return the account. */
static struct trace_damage read_all(struct compose *c, uint64_t *events)
{
	struct trace *t = open_composed(c);
	struct trace_damage damage;
	struct event e;

	*events = 0;
	while (trace_next(t, &e, NULL) > 0)
		++*events;
	damage = trace_facts(t)->damage;
	damage.places = NULL;
	trace_close(t);
	return damage;
}

static void whole(void **state)
{
	struct compose c;
	struct trace_damage d;
	uint64_t events;

	compose_checked(&c);
	d = read_all(&c, &events);
	assert_int_equal(d.count, 0);
	assert_int_equal(d.kinds, 0);
	assert_int_equal(events, 150);
	compose_free(&c);
}

/* Each change of a relevant byte is found, wherever it is. */
static void a_bit(void **state)
{
	static const struct {
		size_t at;
		enum trace_damage_kind kind;
		uint64_t events;
	} bits[] = {
	    {40, TRACE_DAMAGE_HEADER, 150}, /* the parent's pid is put right */
	    {offsetof(struct trace_header, dropped) + 46, TRACE_DAMAGE_HEADER, 150},
	    {65536 + 12, TRACE_DAMAGE_CHUNK, 150}, /* so is a chunk's thread */
	    {65536 + 64 + 9, TRACE_DAMAGE_DEFINITIONS, 150},
	    {131072 + 64 + 4, TRACE_DAMAGE_CHECKSUM, 150},
	    {3 * 65536 + 16, TRACE_DAMAGE_CHUNK, 150},
	    {4 * 65536 + 64 + 5, TRACE_DAMAGE_CHECKSUM, 150}, /* not sealed */
	};

	for (size_t i = 0; i < sizeof(bits) / sizeof(*bits); i++) {
		struct compose c;
		struct trace_damage d;
		uint64_t events;

		compose_checked(&c);
		c.bytes[bits[i].at] ^= 8;
		d = read_all(&c, &events);
		if (!(d.kinds & 1u << bits[i].kind))
			fail_msg("byte %zu: kinds %x", bits[i].at, d.kinds);
		assert_true(d.count > 0);
		if (bits[i].kind != TRACE_DAMAGE_CHECKSUM)
			assert_int_equal(events, bits[i].events);
		compose_free(&c);
	}
}

static void a_chunk(void **state)
{
	struct compose c;
	struct trace_damage d;
	uint64_t events;

	/* the one in the middle: between its neighbours, of one thread */
	compose_checked(&c);
	memset(c.bytes + 3 * 65536, 0, 65536);
	d = read_all(&c, &events);
	assert_int_equal(events, 100);
	assert_int_equal(d.bytes, 65536);
	assert_int_equal(d.threads, 1);
	assert_int_equal(d.from_ns, 100);
	assert_int_equal(d.to_ns, 2100);
	assert_true(d.share > 0.9 && d.share <= 1); /* its neighbours hold little */
	compose_free(&c);

	/* the last one, which no number announces */
	compose_checked(&c);
	memset(c.bytes + 4 * 65536, 0, 65536);
	d = read_all(&c, &events);
	assert_int_equal(events, 100);
	assert_int_equal(d.kinds, 1u << TRACE_DAMAGE_LOST);
	compose_free(&c);

	/* once more in the place of another */
	compose_checked(&c);
	memcpy(c.bytes + 3 * 65536, c.bytes + 2 * 65536, 65536);
	d = read_all(&c, &events);
	assert_int_equal(events, 100);
	assert_true(d.kinds & 1u << TRACE_DAMAGE_REPEATED);
	assert_int_equal(d.bytes, 65536);
	compose_free(&c);

	/* two in each other's place go back to their own */
	compose_checked(&c);
	for (size_t i = 0; i < 65536; i++) {
		uint8_t byte = c.bytes[2 * 65536 + i];

		c.bytes[2 * 65536 + i] = c.bytes[3 * 65536 + i];
		c.bytes[3 * 65536 + i] = byte;
	}
	d = read_all(&c, &events);
	assert_int_equal(events, 150);
	assert_int_equal(d.count, 0);
	compose_free(&c);
}

static void cut_off(void **state)
{
	struct compose c;
	struct trace_damage d;
	uint64_t events;

	compose_checked(&c);
	c.size = 3 * 65536 + 64 + 20;
	d = read_all(&c, &events);
	assert_in_range(events, 51, 60);
	assert_true(d.kinds & 1u << TRACE_DAMAGE_SHORT);
	assert_true(d.bytes > 65536);
	compose_free(&c);
}

/* An ordinary end may leave these in the middle of its work. */
static void killed(void **state)
{
	struct compose c;
	struct trace_damage d;
	uint64_t events;
	uint64_t checksum;

	/* a counter whose copy was still to come; a chunk that was claimed; and the end, without
	 * its last word */
	compose_checked(&c);
	compose_header(&c)->dropped[2]++;
	compose_header(&c)->file_bytes += 1 << 20;
	compose_header(&c)->end_how = TRACE_END_EXIT;
	checksum = checks_end(c.bytes);
	compose_header(&c)->end_how = 0;
	compose_header(&c)->end_check = checksum;
	d = read_all(&c, &events);
	assert_int_equal(d.count, 0);
	assert_int_equal(events, 150);
	compose_free(&c);

	/* a chunk that is there and was not counted yet; one whose checksum is there, and no
	 * seal */
	compose_checked(&c);
	compose_header(&c)->chunk_bytes -= 65536;
	c.bytes[2 * 65536 + offsetof(struct trace_chunk, sealed)] = 0;
	d = read_all(&c, &events);
	assert_int_equal(d.count, 0);
	compose_free(&c);
}

static void words(void **state)
{
	for (unsigned i = 0; i < TRACE_DAMAGE_KINDS; i++)
		assert_non_null(trace_damage_word((enum trace_damage_kind)i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(whole),
	    cmocka_unit_test(a_bit),
	    cmocka_unit_test(a_chunk),
	    cmocka_unit_test(cut_off),
	    cmocka_unit_test(killed),
	    cmocka_unit_test(words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
