/* test_definitions.c - definitions from many threads at once are all there, whole and once. */
#include "../under.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/varint.h"
#include "sampling/sampler.h"
#include "trace/definitions.h"
#include "trace/trace_file.h"

#define THREADS 6
#define EACH 6000

static void *writer(void *argument)
{
	uint64_t first = (uint64_t)(uintptr_t)argument * EACH;

	for (uint64_t i = 0; i < EACH; i++) {
		uint8_t body[400], *p = varint_put(body, first + i + 1);

		memset(p, (int)(first + i), (first + i) % 300);
		if (!definitions_write(
			TRACE_DEF_STACK, body, (size_t)(p - body) + (first + i) % 300))
			return argument;
	}
	return NULL;
}

static void each(
    const struct under_trace *t, void (*see)(const struct trace_def *, void *), void *to)
{
	for (uint64_t at = 65536; at < t->bytes;) {
		const struct trace_chunk *c = (const void *)(t->base + at);

		if (c->magic != TRACE_CHUNK_MAGIC) {
			at += 65536;
			continue;
		}
		for (uint32_t i = 64; c->type == TRACE_CHUNK_DEFINITIONS && i < c->bytes;) {
			const struct trace_def *d = (const void *)(t->base + at + i);

			if (!d->bytes) {
				i += 8;
				continue;
			}
			assert_int_equal(d->bytes % 8, 0);
			assert_true(d->bytes <= c->bytes - i);
			assert_int_equal(d->committed, 1);
			see(d, to);
			i += d->bytes;
		}
		at += c->bytes;
	}
}

static uint8_t seen[THREADS * EACH + 1];

static void check(const struct trace_def *d, void *unused)
{
	const uint8_t *p = (const uint8_t *)(d + 1);
	uint64_t id = 0;
	int shift = 0;

	if (d->kind != TRACE_DEF_STACK)
		return;
	do
		id |= (uint64_t)(*p & 0x7f) << shift, shift += 7;
	while (*p++ & 0x80);
	assert_in_range(id, 1, THREADS * EACH);
	for (uint64_t k = 0; k < (id - 1) % 300; k++)
		assert_int_equal(p[k], (uint8_t)(id - 1));
	seen[id]++;
}

static void test_many(void **state)
{
	pthread_t threads[THREADS];
	struct under_trace *t;
	void *failed;

	assert_int_equal(under_begin(1 << 30), 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, writer, (void *)i);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
	t = under_read();
	each(t, check, NULL);
	for (int i = 1; i <= THREADS * EACH; i++)
		assert_int_equal(seen[i], 1);
	under_free(t);
	under_end();
}

static void largest(const struct trace_def *d, void *to)
{
	if (d->bytes > *(uint32_t *)to)
		*(uint32_t *)to = d->bytes;
}

static void test_large_and_strings(void **state)
{
	static uint8_t body[300000];
	struct under_trace *t;
	uint32_t most = 0, a;

	assert_int_equal(under_begin(1 << 30), 0);
	assert_true(definitions_write(TRACE_DEF_CODE, body, sizeof(body)));
	a = definitions_string("/lib/one");
	assert_true(a > 0);
	assert_int_equal(definitions_string("/lib/one"), a);
	assert_int_not_equal(definitions_string("/lib/two"), a);
	t = under_read();
	each(t, largest, &most);
	assert_in_range(most, sizeof(body), sizeof(body) + 16);
	under_free(t);
	under_end();
}

static void test_no_room(void **state)
{
	struct under_trace *t;
	uint8_t body[1000] = {0};
	uint32_t written = 0;

	assert_int_equal(under_begin(256 << 10), 0);
	while (written < 1000 && definitions_write(TRACE_DEF_STACK, body, sizeof(body)))
		written++;
	assert_in_range(written, 50, 260);
	t = under_read();
	assert_true(
	    ((const struct trace_header *)(const void *)t->base)->dropped[TRACE_DROP_DEFINITION] >
	    0);
	under_free(t);
	under_end();
}

/* When checkpoints replace the other chunks, definitions get a share of the budget. */
static void test_share(void **state)
{
	uint8_t body[1000] = {0};
	const uint64_t budget = 4 << 20,
		       each = sizeof(body) + 2 * sizeof(struct trace_def); /* with its check */
	uint64_t written = 0, more = 0;

	assert_int_equal(under_begin(budget), 0);
	assert_int_equal(definitions_room(), DEFINITIONS_AMPLE);
	sampler_set(true, 1000, 1000);
	assert_true(sampler.by_table);
	while (written < 100000 && definitions_write(TRACE_DEF_STACK, body, sizeof(body))) {
		written += each;
		assert_true(definitions_room() == DEFINITIONS_AMPLE || written >= budget / 4 - 100);
	}
	assert_int_equal(written / each, 100000 / each + 1);
	while (definitions_room() == DEFINITIONS_AMPLE &&
	       definitions_write(TRACE_DEF_STACK, body, sizeof(body)))
		written += each;
	assert_in_range(written, budget / 4 - 2 * each, budget / 4 + 2 * each);
	assert_int_equal(definitions_room(), DEFINITIONS_BRIEF);
	assert_false(definitions_write(TRACE_DEF_THREAD, body, sizeof(body)));
	assert_int_equal(trace_file_header->untold, 1);
	while (definitions_room() == DEFINITIONS_BRIEF &&
	       definitions_write(TRACE_DEF_STACK, body, sizeof(body)))
		written += each;
	assert_in_range(written, budget / 3 - 2 * each, budget / 3 + 2 * each);
	assert_int_equal(definitions_room(), DEFINITIONS_BRIEFEST);
	while (definitions_write(TRACE_DEF_CODE, body, sizeof(body)))
		more += each;
	assert_in_range(more, budget / 24 - 2 * each, budget / 24 + 2 * each);
	assert_int_equal(definitions_room(), DEFINITIONS_NONE);
	assert_false(definitions_write(TRACE_DEF_STACK, body, sizeof(body)));
	assert_int_equal(trace_file_header->untold, 3);
	assert_false(definitions_write(TRACE_DEF_STRING, body, sizeof(body)));
	for (unsigned i = 0; i < 100; i++)
		assert_true(definitions_write(TRACE_DEF_MODULE, body, sizeof(body)));
	for (int i = 0; i < TRACE_DROP_REASONS; i++)
		assert_int_equal(trace_file_header->dropped[i], 0);
	under_end();
	/* the child of a fork has a file of its own */
	assert_int_equal(definitions_room(), DEFINITIONS_AMPLE);
	memset(&sampler, 0, sizeof(sampler));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_many),
	    cmocka_unit_test(test_large_and_strings),
	    cmocka_unit_test(test_no_room),
	    cmocka_unit_test(test_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
