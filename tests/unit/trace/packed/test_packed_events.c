/* Any chunk comes back the same; other bytes are reported, and damaged streams never yield wrong
 * data. */
#include "trace/packed/packed_events.h"

#include <stdlib.h>
#include <string.h>

#include "../../util/unit.h"
#include "whyoom/trace.h"

#define SLOT 65536u

struct maker {
	uint8_t *data;
	size_t at, bytes;
	uint64_t address;
};

static void begin(struct maker *m, size_t bytes)
{
	m->data = calloc(1, bytes);
	m->bytes = bytes;
	m->at = sizeof(struct trace_chunk);
	m->address = 0;
}

static void end(struct maker *m)
{
	struct trace_chunk head = {.magic = TRACE_CHUNK_MAGIC,
	    .type = TRACE_CHUNK_EVENTS,
	    .header_bytes = sizeof(head),
	    .bytes = (uint32_t)m->bytes,
	    .thread = 1,
	    .ticks = 1000,
	    .committed = (uint32_t)(m->at - sizeof(head))};

	assert_true(m->at <= m->bytes);
	memcpy(m->data, &head, sizeof(head));
}

static void put(struct maker *m, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		m->data[m->at++] = (uint8_t)(value | 0x80);
	m->data[m->at++] = (uint8_t)value;
}

static void put_to(struct maker *m, unsigned tag, uint64_t dt, uint64_t address)
{
	uint64_t step = address - m->address;

	m->data[m->at++] = (uint8_t)tag;
	put(m, dt);
	put(m, step << 1 ^ (0 - (step >> 63)));
	m->address = address;
}

static void put_alloc(struct maker *m, uint64_t address, uint64_t size, uint64_t stack)
{
	put_to(m, stack ? 1 : 0x81, size % 300, address);
	put(m, size);
	if (stack)
		put(m, stack);
}

static uint32_t next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

/* As a program does: blocks of few sizes come and go, addresses are reused. */
static void put_work(struct maker *m, uint64_t seed, unsigned events)
{
	uint64_t live[64] = {0}, size_of[64], spare[64] = {0};

	for (unsigned n = 0; n < events; n++) {
		unsigned slot = next(&seed) % 64, what = next(&seed) % 40;

		if (what == 0) { /* with a length */
			static const uint8_t level[] = {0x0f, 22, 4, 3, 0, 1, 1};

			memcpy(m->data + m->at, level, sizeof(level));
			m->at += sizeof(level);
		} else if (what == 1) {
			put_to(m, 3, 0, live[slot]);
		} else if (what == 2) { /* of a block that was never acquired */
			put_to(m, 2, 300000, next(&seed));
		} else if (what == 3) {
			put_to(m, 4, 5, next(&seed) % 4 ? m->address : ~(uint64_t)next(&seed));
			put(m, next(&seed) % 3 ? 24 : (uint64_t)next(&seed) << 20);
		} else if (what == 4) {
			put_to(m, 0x84, 5, next(&seed));
		} else if (live[slot]) {
			put_to(m, what % 2 ? 2 : 0x12, what, live[slot]);
			spare[slot] = live[slot];
			live[slot] = 0;
		} else {
			size_of[slot] = 16 + (slot % 5) * (slot % 5) * 700;
			live[slot] = spare[slot] ? spare[slot] : 0x1000000 + next(&seed) % 100000;
			put_alloc(m, live[slot], size_of[slot], what % 3 ? 1 + slot % 7 : 0);
		}
	}
}

static void assert_same(const struct maker *m)
{
	struct packed_streams s = {0};
	uint8_t *again = malloc(m->bytes);

	assert_int_equal(packed_split(m->data, m->bytes, &s), 0);
	memset(again, 0x55, m->bytes);
	assert_int_equal(packed_join(&s, again, m->bytes), 0);
	assert_memory_equal(again, m->data, m->bytes);
	packed_streams_fini(&s);
	free(again);
}

static void whatever_is_in_it(void **state)
{
	struct maker m;

	for (unsigned n = 0; n < 60; n++) {
		begin(&m, n % 3 ? SLOT : 4 * SLOT);
		put_work(&m, n, n * 80);
		memset(m.data + m.bytes - 64, 0x77, n); /* signal handlers left these */
		end(&m);
		assert_same(&m);
		free(m.data);
	}
}

/* Addresses and stacks of the largest values. */
static void extremes(void **state)
{
	struct maker m;

	begin(&m, SLOT);
	put_alloc(&m, UINT64_MAX, UINT64_MAX, UINT64_MAX);
	put_to(&m, 2, UINT64_MAX, UINT64_MAX);
	put_alloc(&m, UINT64_MAX, UINT64_MAX, 0);
	put_alloc(&m, 1ull << 63, 0, 1);
	put_to(&m, 0x84, 0, 0);
	put_to(&m, 2, 255, 0);
	put_to(&m, 2, 254, 1ull << 63);
	end(&m);
	assert_same(&m);
	free(m.data);
}

/* A block in the place of the one released last costs no address. */
static void places_are_foretold(void **state)
{
	struct packed_streams s = {0};
	struct maker m;

	begin(&m, SLOT);
	for (unsigned n = 0; n < 8; n++)
		put_alloc(&m, 0x1000 + 0x64 * n, 100, 1);
	for (unsigned n = 0; n < 500; n++) {
		uint64_t a = 0x1000 + 0x64 * (n * n % 8), b = 0x1000 + 0x64 * ((n * n + 1) % 8);

		put_to(&m, 2, 1, a);
		put_to(&m, 2, 1, b);
		put_alloc(&m, b, 96, 1); /* of the same class */
		put_alloc(&m, a, 100, 1);
	}
	end(&m);
	assert_int_equal(packed_split(m.data, m.bytes, &s), 0);
	assert_int_equal(s.of[PACKED_ADDRESS].length, 8);
	assert_int_equal(s.of[PACKED_AGE].length, 1000);
	packed_streams_fini(&s);
	assert_same(&m);
	free(m.data);
}

static void assert_refused(const struct maker *m, size_t bytes)
{
	struct packed_streams s = {0};

	assert_int_equal(packed_split(m->data, bytes, &s), 1);
	packed_streams_fini(&s);
}

static void what_is_no_such_chunk(void **state)
{
	struct maker m;
	size_t at;

	begin(&m, SLOT);
	put_work(&m, 1, 100);
	at = m.at;
	end(&m);
	assert_refused(&m, 0);
	assert_refused(&m, 64);
	assert_refused(&m, SLOT - 8);
	m.data[4] = TRACE_CHUNK_DEFINITIONS;
	assert_refused(&m, SLOT);
	m.at = at;
	m.data[m.at++] = 0x05; /* no event */
	end(&m);
	assert_refused(&m, SLOT);
	m.at = at;
	put_to(&m, 2, 0, 0x100);
	m.at--; /* cut off */
	end(&m);
	assert_refused(&m, SLOT);
	m.at = at;
	memcpy(m.data + m.at, "\x02\x81\x00\x00", 4); /* a varint that is longer than needed */
	m.at += 4;
	end(&m);
	assert_refused(&m, SLOT);
	free(m.data);
}

/* Each byte of each stream is changed, and each stream cut: another chunk, or none. */
static void damage(void **state)
{
	struct packed_streams s = {0};
	uint8_t *again = malloc(SLOT);
	unsigned refused = 0, tried = 0;
	struct maker m;

	begin(&m, SLOT);
	put_work(&m, 7, 300);
	end(&m);
	assert_int_equal(packed_split(m.data, SLOT, &s), 0);
	for (size_t i = 0; i < PACKED_STREAMS; i++) {
		struct packed_bytes *b = &s.of[i];

		for (size_t k = 0; k < b->length && k < 2000; k++, tried++) {
			uint8_t was = b->data[k];

			b->data[k] ^= (uint8_t)(1 + tried % 255);
			refused += packed_join(&s, again, SLOT) != 0;
			b->data[k] = was;
		}
		if (b->length) {
			b->length--;
			assert_int_equal(packed_join(&s, again, SLOT), 1);
			b->length++;
		}
	}
	assert_true(refused > 100);
	assert_int_equal(packed_join(&s, again, SLOT), 0);
	assert_int_equal(packed_join(&s, again, SLOT - 1), 1);
	assert_memory_equal(again, m.data, SLOT - 1);
	packed_streams_fini(&s);
	free(m.data);
	free(again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(whatever_is_in_it),
	    cmocka_unit_test(extremes),
	    cmocka_unit_test(places_are_foretold),
	    cmocka_unit_test(what_is_no_such_chunk),
	    cmocka_unit_test(damage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
