/* Queues whose consumer is slower than the producer. */
#include "model/world.h"

/* Jobs wait in a queue. The worker handles one in `every`; `forgets`: it takes the newest first
 * and never reaches the oldest. */
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

/* Several workers take from the head of the queue and finish in random order; or from anywhere
 * in it, like a cache that evicts. */
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

/* Of three times `at_once` new blocks `at_once` are released together: by workers in step, or by
 * one that drops a pile, and then hardly more than a pile waits. */
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

/* A few blocks at a time are dropped in order of creation until nothing is left; then many are
 * made and none is released. At some pace as many blocks seem to wait at the last release as from
 * several consumers in step. */
static bool backlog_of_piles(uint64_t wait_ns)
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
	for (uint64_t i = 0; i < 500; i++) {
		if (i % 25 == 0)
			script_wait(w.s, wait_ns);
		script_alloc(w.s, job, 5000);
	}
	look(&w);
	grows = at(&w, job)->backlog.grows;
	end(&w);
	return grows;
}

/* Return whether piles are seen to grow that vary from one to the next; in `any` order, or so that
 * every fifth is larger than all before. */
static bool piles_grow(bool any)
{
	struct world w = {.s = script_new()};
	uint32_t job = script_stack(w.s, "main;row");
	bool grows;

	for (uint64_t i = 0; i < 101; i++) {
		uint64_t blocks[200], count = 20 + i * 37 % 29;

		if (!any && i % 5 == 0)
			count = 50 + i;
		for (uint64_t k = 0; k < count; k++)
			blocks[k] = script_alloc(w.s, job, 5000);
		for (uint64_t k = 0; i < 100 && k < count; k++)
			script_release(w.s, blocks[k]);
	}
	look(&w);
	grows = at(&w, job)->buildup.grows;
	end(&w);
	return grows;
}

static void test_piles(void **state)
{
	assert_true(piles_grow(false));
	assert_false(piles_grow(true));
	(void)state;
}

static void test_backlog(void **state)
{
	assert_true(backlog_in_step(1));
	assert_true(backlog_in_step(4));
	assert_true(backlog_in_step(32));
	assert_false(backlog_in_step(100));
	assert_false(backlog_of_piles(0));
	for (uint64_t wait_ns = 1000; wait_ns <= 1000000; wait_ns *= 10)
		assert_false(backlog_of_piles(wait_ns));
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
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_backlog),
	    cmocka_unit_test(test_piles),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
