/* malloc's account, carried on with its blocks. */
#include "model/unit.h"

#include "model/script.h"
#include "verdict/ledger/malloc_held.h"

static struct model *m;
static struct callsites *callsites;

/* The account has 100 live blocks of 10 KiB; then `then` blocks are released, and `more`
 * acquired. */
static struct malloc_held asked(uint64_t arena, uint64_t mmap, unsigned then, unsigned more)
{
	struct script *s = script_new();
	uint32_t stack = script_stack(s, "main;work");
	struct feed feed = script_feed(s);
	struct malloc_held held;
	uint64_t blocks[100];
	struct event_level levels[] = {{TRACE_LEVEL_MALLOC_ARENA, arena},
	    {TRACE_LEVEL_MALLOC_MMAP, mmap}, {TRACE_LEVEL_MALLOC_FREE, arena > MiB ? MiB : 0}};
	struct event *e, next;
	struct err err;

	for (int i = 0; i < 100; i++)
		blocks[i] = script_alloc(s, stack, 10 * KiB);
	e = script_event(s, EV_LEVEL, TRACE_SPACE_HOST);
	e->levels = levels;
	e->level_count = arena ? 3 : 0;
	script_wait(s, 1000000000);
	for (unsigned i = 0; i < then; i++)
		script_release(s, blocks[i]);
	for (unsigned i = 0; i < more; i++)
		script_alloc(s, stack, 10 * KiB);
	assert_int_equal(model_new(feed, &m, &err), 0);
	while (feed.next(feed.self, &next, &err) == 1)
		assert_int_equal(model_apply(m, &next, &err), 0);
	model_finish(m);
	assert_int_equal(callsites_new(m, AT_END, &callsites, &err), 0);
	malloc_held(m, callsites, 0, &held);
	callsites_free(callsites);
	model_free(m);
	script_free(s);
	return held;
}

static void test_carried(void **state)
{
	uint64_t live = 1000 * KiB, arena = live + MiB + 100 * KiB;
	struct malloc_held h = asked(arena, 0, 0, 0);

	assert_true(h.known && h.split);
	assert_int_equal(h.overhead, 100 * KiB);
	assert_int_equal(h.free, MiB);
	/* Half of them given back: their bytes and half of the headers are free. */
	h = asked(arena, 0, 50, 0);
	assert_int_equal(h.overhead, 50 * KiB);
	assert_int_equal(h.free, MiB + 500 * KiB + 50 * KiB);
	/* Later blocks fill the free bytes; the rest is new. */
	h = asked(arena, 0, 0, 50);
	assert_int_equal(h.free, MiB - 550 * KiB);
	assert_in_range(h.since, 1, 600 * KiB);
	assert_int_equal(asked(arena, 0, 0, 300).free, 0);
	(void)state;
}

static void test_mappings(void **state)
{
	uint64_t live = 1000 * KiB;
	/* Half of the blocks had mappings of their own: the kernel got those back. */
	struct malloc_held h = asked(live / 2 + MiB + 100 * KiB, live / 2, 50, 0);

	assert_int_equal(h.free, MiB + 50 * KiB);
	(void)state;
}

static void test_of_another(void **state)
{
	assert_false(asked(0, 0, 0, 0).known);
	/* Less than the live blocks. */
	assert_false(asked(MiB - 100 * KiB, 0, 0, 0).known);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_carried),
	    cmocka_unit_test(test_mappings), cmocka_unit_test(test_of_another)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
