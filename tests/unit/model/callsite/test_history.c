/* What histories show: growing blocks, blocks that stay, prompts and what feeds them, tables. */
#include "model/world.h"

#include <math.h>

/* One in eight gets a hole that is larger than what was asked for. */
static void test_padded(void **state)
{
	const uint64_t mib = 1 << 20;

	for (int known = 0; known < 2; known++) {
		struct world w = {.s = script_new()};
		uint32_t grow = script_stack(w.s, "main;grow");
		uint64_t seed = 7;

		for (uint64_t i = 0; i < 480; i++)
			script_release(w.s, script_alloc(w.s, grow,
						mib + mib / 16 + 1500 * i +
						    (i % 8 == 3 ? dice(&seed, mib - 1) : 0)));
		w.padding = known ? mib : 0;
		look(&w);
		assert_true(at(&w, grow)->size.grows == known);
		end(&w);
	}
	(void)state;
}

static void test_sizes(void **state)
{
	struct world w = {.s = script_new()};
	uint64_t seed = 5;
	uint32_t grow = script_stack(w.s, "main;grow"), noise = script_stack(w.s, "main;noise");
	uint32_t saw = script_stack(w.s, "main;saw"), stops = script_stack(w.s, "main;stops");
	uint32_t levels = script_stack(w.s, "main;levels"), slow = script_stack(w.s, "main;slow");

	for (uint64_t i = 0; i < 3000; i++) {
		script_release(w.s, script_alloc(w.s, grow, 1000 * (i + 1) + dice(&seed, 200000)));
		script_release(w.s, script_alloc(w.s, noise, 1 + dice(&seed, 3000000)));
		script_release(w.s, script_alloc(w.s, saw, 50000 * (i % 47 + 1)));
		script_release(w.s, script_alloc(w.s, stops, 1000 * ((i < 900 ? i : 900) + 1)));
		/* With more and more digits of a number in it, for two thirds of the time. */
		script_release(w.s,
		    script_alloc(w.s, levels,
			i < 2000 ? 900 * (i < 900 ? i : 900) + 40 * i : 900 * 900 + 40 * 2000));
		script_release(
		    w.s, script_alloc(w.s, slow, 1000 + (uint64_t)(100000 * log1p((double)i))));
	}
	look(&w);
	assert_true(at(&w, grow)->size.grows);
	assert_false(at(&w, grow)->size.geometric);
	assert_false(at(&w, noise)->size.grows);
	assert_false(at(&w, saw)->size.grows);
	assert_false(at(&w, stops)->size.grows);
	assert_false(at(&w, levels)->size.grows);
	assert_true(at(&w, slow)->size.grows);
	assert_false(at(&w, grow)->keep.stays);
	end(&w);
	(void)state;
}

/* A large block once a turn among many small ones of the same line. */
static void test_hidden_series(void **state)
{
	struct world w = {.s = script_new()};
	uint64_t seed = 5;
	uint32_t join = script_stack(w.s, "main;build@m.c:4;join@/lib/libc.so.6");
	uint32_t list = script_stack(w.s, "main;build@m.c:4;list@/lib/libc.so.6");

	for (uint64_t turn = 1; turn < 60; turn++) {
		uint64_t prompt = script_alloc(w.s, join, turn * 100000);
		for (uint64_t i = 0; i < 20 + dice(&seed, 30); i++)
			script_release(w.s, script_alloc(w.s, list, 30000));
		script_release(w.s, prompt);
	}
	look(&w);
	assert_int_equal(callsites_of_stack(w.p, STACK_STATS_HEAP, join),
	    callsites_of_stack(w.p, STACK_STATS_HEAP, list));
	assert_true(at(&w, join)->size.grows);
	end(&w);
	(void)state;
}

static void test_keeping(void **state)
{
	struct world w = {.s = script_new()};
	uint32_t leak = script_stack(w.s, "main;leak"), cache = script_stack(w.s, "main;cache");
	uint32_t start = script_stack(w.s, "main;start"), part = script_stack(w.s, "main;part");
	uint64_t ring[100] = {0};

	for (int i = 0; i < 500; i++)
		script_alloc(w.s, start, 1000);
	for (int i = 0; i < 10000; i++) {
		uint64_t p = script_alloc(w.s, part, 100);

		script_alloc(w.s, leak, 100);
		if (ring[i % 100])
			script_release(w.s, ring[i % 100]);
		ring[i % 100] = script_alloc(w.s, cache, 5000);
		if (i % 5) /* every fifth is forgotten */
			script_release(w.s, p);
	}
	look(&w);
	assert_true(at(&w, leak)->keep.stays);
	assert_true(at(&w, part)->keep.stays);
	assert_false(at(&w, cache)->keep.stays);
	assert_false(at(&w, start)->keep.stays);
	assert_int_equal(at(&w, part)->keep.count, 2000);
	end(&w);
	(void)state;
}

/* A machine that stalls half-way must not make a leak look as if it had ended. */
static void test_stalled_clock(void **state)
{
	struct world w = {.s = script_new()};
	uint32_t leak = script_stack(w.s, "main;leak"), other = script_stack(w.s, "main;other");

	for (int i = 0; i < 5000; i++) {
		script_alloc(w.s, leak, 100);
		script_release(w.s, script_alloc(w.s, other, 100));
		script_step(w.s, i < 4500 ? 1000 : 20000);
	}
	look(&w);
	assert_true(at(&w, leak)->keep.stays);
	end(&w);
	(void)state;
}

static void test_feeds(void **state)
{
	struct world w = {.s = script_new()};
	uint32_t keep = script_stack(w.s, "main;remember"), build = script_stack(w.s, "main;build");
	uint32_t apart = script_stack(w.s, "main;apart");

	for (uint64_t turn = 1; turn < 200; turn++) {
		script_alloc(w.s, keep, 50000);
		script_alloc(w.s, apart, 900000); /* leaks twenty times as much: not its material */
		script_release(w.s, script_alloc(w.s, build, turn * 50000));
	}
	look(&w);
	assert_int_equal(at(&w, keep)->feeds, callsites_of_stack(w.p, STACK_STATS_HEAP, build));
	assert_int_equal(at(&w, apart)->feeds, CALLSITE_NONE);
	assert_float_equal(at(&w, keep)->feed_slope, 1, 0.05);
	end(&w);
	(void)state;
}

static void test_index(void **state)
{
	struct world w = {.s = script_new()};
	uint32_t node = script_stack(w.s, "main;node"), table = script_stack(w.s, "main;table");
	uint64_t room = 16, array = script_alloc(w.s, table, room * 8);

	for (uint64_t i = 0; i < 100000; i++) {
		if (i == room) {
			room *= 2;
			array = script_realloc(w.s, array, table, room * 8);
		}
		script_alloc(w.s, node, 40);
	}
	look(&w);
	assert_true(at(&w, table)->size.geometric);
	assert_int_equal(at(&w, table)->index_of, callsites_of_stack(w.p, STACK_STATS_HEAP, node));
	assert_int_equal(at(&w, node)->feeds, CALLSITE_NONE);
	assert_float_equal(callsite_kept(at(&w, node), UINT64_MAX), 4000000, 1);
	assert_float_equal(callsite_kept(at(&w, node), 0), 0, 1);
	end(&w);
	(void)state;
}

/* One of many answers inflates to thousands of times their size; a transcript that grows by
 * realloc() with every answer, among their work, does grow. */
static void test_one_object(void **state)
{
	for (int inflates = 0; inflates < 2; inflates++) {
		struct world w = {.s = script_new()};
		uint32_t out = script_stack(w.s, "main;answer;out"),
			 work = script_stack(w.s, "main;work");
		uint64_t text = 0;

		for (int i = 0; i < 400; i++) {
			uint64_t small =
			    script_realloc(w.s, script_alloc(w.s, out, 1000), out, 3000);

			script_release(w.s, small);
			if (inflates)
				continue;
			script_release(w.s, script_alloc(w.s, work, 300000));
			text = text ? script_realloc(w.s, text, out, 4000 + 2000 * (uint64_t)i)
				    : script_alloc(w.s, out, 4000);
		}
		if (inflates)
			text = script_alloc(w.s, out, 1000);
		for (uint64_t size = 2000; inflates && size < 100000000; size *= 2)
			text = script_realloc(w.s, text, out, size);
		look(&w);
		assert_int_equal(at(&w, out)->size.grows, !inflates);
		end(&w);
	}
	(void)state;
}

/* Jobs wait in a queue: the worker is slower (`every` > 1), or as fast; `forgets`: it takes the
 * last one first, and the oldest are never worked off. */
static bool backlog_grows(uint64_t every, uint64_t window, bool forgets)
{
	struct world w = {.s = script_new()};
	uint32_t job = script_stack(w.s, "main;produce");
	uint64_t jobs[1200], head = 0;
	bool grows;

	for (uint64_t i = 0; i < 1200; i++) {
		jobs[i] = script_alloc(w.s, job, 5000);
		script_wait(w.s, 1000000);
		if (i % every || i < window)
			continue;
		script_release(w.s, jobs[forgets ? i : head++]);
	}
	look(&w);
	grows = at(&w, job)->backlog.grows;
	if (grows)
		assert_int_equal(at(&w, job)->backlog.count + at(&w, job)->backlog.served, 1200);
	end(&w);
	return grows;
}

/* Several take from the queue, in turn, and any of them may be the next that is done; or from
 * anywhere in it, as who throws out what a cache holds. */
static bool backlog_of_several(uint64_t consumers, bool anywhere)
{
	struct world w = {.s = script_new()};
	uint32_t job = script_stack(w.s, "main;receive");
	uint64_t blocks[1200], first = 0, seed = 77, taken[8], n = 0;
	bool grows;

	for (uint64_t i = 0; i < 1200; i++) {
		uint64_t k;

		blocks[i] = script_alloc(w.s, job, 5000);
		script_wait(w.s, 1000000);
		if (i % 3)
			continue;
		while (n < consumers && first <= i) {
			uint64_t of = anywhere ? first + dice(&seed, i + 1 - first) : first;

			taken[n++] = blocks[of];
			blocks[of] = blocks[first++];
		}
		k = dice(&seed, n);
		script_release(w.s, taken[k]);
		taken[k] = taken[--n];
	}
	look(&w);
	grows = at(&w, job)->backlog.grows;
	end(&w);
	return grows;
}

/* So many at once are done with, of three times as many that came meanwhile: by workers in step,
 * else whoever drops a pile of what it has, and of those hardly more wait. */
static bool backlog_in_step(uint64_t at_once)
{
	struct world w = {.s = script_new()};
	uint32_t job = script_stack(w.s, "main;receive");
	uint64_t blocks[1200], first = 0;
	bool grows;

	for (uint64_t i = 0; i < 1200; i++) {
		blocks[i] = script_alloc(w.s, job, 5000);
		script_wait(w.s, 1000000);
		for (uint64_t k = 0; (i + 1) % (3 * at_once) == 0 && k < at_once; k++)
			script_release(w.s, blocks[first++]);
	}
	look(&w);
	grows = at(&w, job)->backlog.grows;
	end(&w);
	return grows;
}

/* A few at once are dropped time and again, in the order in which they were made, until nothing is
 * left; then many are made, and none is given back. */
static bool backlog_of_piles(void)
{
	struct world w = {.s = script_new()};
	uint32_t job = script_stack(w.s, "main;receive");
	bool grows;

	for (uint64_t i = 0; i < 100; i++) {
		uint64_t blocks[24], count = 5 + i % 20;

		for (uint64_t k = 0; k < count; k++)
			blocks[k] = script_alloc(w.s, job, 5000);
		for (uint64_t k = 0; k < count; k++)
			script_release(w.s, blocks[k]);
	}
	for (uint64_t i = 0; i < 500; i++)
		script_alloc(w.s, job, 5000);
	look(&w);
	grows = at(&w, job)->backlog.grows;
	end(&w);
	return grows;
}

static void test_backlog(void **state)
{
	assert_true(backlog_in_step(1));
	assert_true(backlog_in_step(4));
	assert_true(backlog_in_step(32));
	assert_false(backlog_in_step(100));
	assert_false(backlog_of_piles());
	assert_true(backlog_of_several(2, false));
	assert_true(backlog_of_several(4, false));
	assert_false(backlog_of_several(1, true));
	assert_true(backlog_grows(3, 0, false));
	assert_true(backlog_grows(10, 0, false));
	assert_false(backlog_grows(1, 0, false)); /* it keeps up */
	assert_false(backlog_grows(1, 300, false)); /* a window of the last 300 */
	assert_false(backlog_grows(3, 0, true)); /* most are forgotten */
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_sizes),
	    cmocka_unit_test(test_padded),
	    cmocka_unit_test(test_hidden_series),
	    cmocka_unit_test(test_keeping),
	    cmocka_unit_test(test_stalled_clock),
	    cmocka_unit_test(test_feeds),
	    cmocka_unit_test(test_index),
	    cmocka_unit_test(test_one_object),
	    cmocka_unit_test(test_backlog),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
