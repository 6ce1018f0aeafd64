#include "../events.h"
#include "trace/integrity/checks.h"

static void chunk_header(void **state)
{
	uint8_t sides[2 * sizeof(struct trace_side)] = {1, 2, 3};
	struct trace_chunk chunk = {.magic = TRACE_CHUNK_MAGIC,
	    .type = TRACE_CHUNK_EVENTS,
	    .header_bytes = 64,
	    .bytes = 65536,
	    .thread = 7,
	    .sequence = 3,
	    .ticks = 1000};
	uint8_t *raw = (uint8_t *)&chunk;

	chunk.check = checks_open(raw);
	/* Fields that change while the chunk is written are not part of its checksum. */
	chunk.committed = 100;
	chunk.bytes = 1 << 20;
	chunk.checksum = 5;
	assert_true(checks_chunk(raw, NULL, 0));
	chunk.check = checks_sealed(raw, sides, sizeof(sides));
	assert_true(checks_chunk(raw, sides, sizeof(sides)));
	assert_false(checks_chunk(raw, NULL, 0));
	chunk.committed ^= 1;
	assert_false(checks_chunk(raw, sides, sizeof(sides)));
	/* one wrong bit is found, two are not */
	assert_true(checks_repair_chunk(raw, sides, sizeof(sides)));
	assert_int_equal(chunk.committed, 100);
	chunk.thread ^= 3;
	assert_false(checks_repair_chunk(raw, sides, sizeof(sides)));
	assert_int_equal(chunk.thread, 7 ^ 3);
}

/* Of three events: a compact one, one with a length, and another. */
static void sum_of_events(void **state)
{
	uint8_t chunk[128] = {0};
	uint8_t *body = chunk + 64;
	const uint8_t events[] = {TRACE_FREE, 1, 2, TRACE_EXTENDED, 24, 30, 0, 0, 0, 0, 0, 0, 0, 0,
	    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, TRACE_ALLOC, 1, 2, 3,
	    4};
	const size_t ends[] = {3, 36, 41};
	uint64_t sum = 0, before = 0;

	chunk[60] = 77;
	memcpy(body, events, sizeof(events));
	for (size_t i = 0; i < 3; i++) {
		before = sum;
		sum += checks_words(body, body + (i ? ends[i - 1] : 0), body + ends[i], sum);
	}
	assert_true(checks_sum(body, 41, sum));
	assert_true(checks_sum(body, 41, before)); /* killed in between */
	assert_true(checks_sum(body, 41, xxh64_of(body, 41))); /* or while it was sealed */
	assert_false(checks_sum(body, 36, sum));
	assert_false(checks_sum(body, 40, sum)); /* in the middle of one */
	for (size_t bit = 0; bit < 8 * 41; bit++) {
		body[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(checks_sum(body, 41, sum));
		body[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void definition(void **state)
{
	uint8_t record[24] = {24, 0, 0, 0, TRACE_DEF_STRING, 0, 0, 0, 1, 2, 'a', 'b'};
	uint32_t check = checks_definition(record, sizeof(record));

	record[6] = 1; /* is committed */
	assert_int_equal(checks_definition(record, sizeof(record)), check);
	record[10]++;
	assert_int_not_equal(checks_definition(record, sizeof(record)), check);
}

static void header_page(void **state)
{
	static uint8_t page[TRACE_HEADER_BYTES];
	struct trace_header *h = (struct trace_header *)page;
	const uint16_t *offsets;

	memcpy(h->magic, TRACE_MAGIC, 8);
	h->dropped[3] = 5;
	checks_page(page);
	assert_true(h->check == checks_header(page));
	assert_int_equal(h->end_check, 0);
	h->end_how = TRACE_END_EXIT;
	checks_page(page);
	assert_true(h->end_check == checks_end(page));
	for (size_t i = checks_counters(&offsets); i-- > 0;)
		assert_memory_equal(page + offsets[i], page + TRACE_COPY_OFFSET + offsets[i], 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(chunk_header),
	    cmocka_unit_test(sum_of_events),
	    cmocka_unit_test(definition),
	    cmocka_unit_test(header_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
