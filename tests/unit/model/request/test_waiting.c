/* A library's own threads make blocks for a waiting thread: the line to blame. */
#include "model/world.h"

#include "model/request/waiting.h"

#define CALLER 1u
#define OTHER 2u
#define POOL 8u

#define LIB "@/usr/lib/libquery.so"

static struct waiting read_waiting(struct world *w, uint32_t stack)
{
	struct waiting found;
	struct feed feed = script_feed(w->s);
	struct err err;

	assert_int_equal(waiting_read(feed, w->p, callsites_of_stack(w->p, STACK_STATS_HEAP, stack),
			     NULL, &found, &err),
	    0);
	return found;
}

static const char *function_of(struct world *w, const struct waiting *found)
{
	struct feed feed = script_feed(w->s);
	const struct symbol *symbols;

	assert_in_range(found->frame + 1u, 1, feed.symbols(feed.self, found->stack, &symbols));
	return symbols[found->frame].function;
}

/* One calls, three work for it; meanwhile another thread is busy with its own work, or is not. */
static void test_who_waits(void **state)
{
	for (int busy = 0; busy < 2; busy++) {
		struct world w = {.s = script_new()};
		uint32_t ask = script_stack(w.s, "main@/app/m.c:9;answer@/app/m.c:20;plan" LIB),
			 work = script_stack(w.s, "start" LIB ";join" LIB),
			 beside = script_stack(w.s, "main@/app/m.c:9;tidy@/app/m.c:40");
		struct waiting found;
		struct feed feed = script_feed(w.s);

		for (uint32_t i = 0; i < 300; i++) {
			script_thread(w.s, CALLER, 0);
			script_release(w.s, script_alloc(w.s, ask, 100));
			for (uint32_t k = 0; k < 3; k++) {
				script_thread(w.s, POOL + k, 0);
				script_alloc(w.s, work, 50000);
				script_thread(w.s, OTHER, 0);
				if (busy && k)
					script_release(w.s, script_alloc(w.s, beside, 64));
			}
		}
		look(&w);
		assert_true(
		    waiting_possible(&feed, w.p, callsites_of_stack(w.p, STACK_STATS_HEAP, work)));
		found = read_waiting(&w, work);
		if (busy) {
			assert_int_equal(found.stack, 0);
		} else {
			assert_string_equal(function_of(&w, &found), "answer");
			assert_true(found.share == 1);
		}
		end(&w);
	}
	(void)state;
}

/* A Python thread that takes others' blocks has no user's line either; if it is the main thread,
 * no thread waits. */
static void test_python(void **state)
{
	for (uint32_t thread = 1; thread <= POOL; thread += POOL - 1) {
		struct world w = {.s = script_new()};
		uint32_t take = script_stack(w.s,
			     "_bootstrap@/usr/lib/python3.11/threading.py:9;"
			     "results@/usr/lib/python3.11/multiprocessing/pool.py:5"),
			 ask = script_stack(w.s, "collect@/app/m.py:9");
		struct feed feed = script_feed(w.s);
		struct waiting found;

		script_alloc(w.s, script_stack(w.s, "main"), 64);
		for (uint32_t i = 0; i < 3000; i++) {
			script_thread(w.s, CALLER + 1, 0);
			if (i % 100 == 0)
				script_release(w.s, script_alloc(w.s, ask, 600));
			script_thread(w.s, thread, 0);
			script_alloc(w.s, take, 50000);
		}
		look(&w);
		assert_true(
		    waiting_possible(&feed, w.p, callsites_of_stack(w.p, STACK_STATS_HEAP, take)));
		found = read_waiting(&w, take);
		assert_int_equal(found.stack, thread == POOL ? ask : 0);
		end(&w);
	}
	(void)state;
}

/* No user's frame: two pools of the library. A thread with a user's frame waits for no other. */
static void test_nobody(void **state)
{
	struct world w = {.s = script_new()};
	uint32_t work = script_stack(w.s, "start" LIB ";join" LIB),
		 else_ = script_stack(w.s, "start" LIB ";flush" LIB),
		 own = script_stack(w.s, "main@/app/m.c:9;build@/app/m.c:30");
	struct feed feed = script_feed(w.s);
	struct waiting found;

	for (uint32_t i = 0; i < 100; i++) {
		script_thread(w.s, POOL, 0);
		script_alloc(w.s, work, 50000);
		script_thread(w.s, POOL + 1, 0);
		script_alloc(w.s, else_, 50000);
	}
	script_alloc(w.s, own, 10000000);
	look(&w);
	found = read_waiting(&w, work);
	assert_int_equal(found.stack, 0);
	assert_false(waiting_possible(&feed, w.p, callsites_of_stack(w.p, STACK_STATS_HEAP, own)));
	end(&w);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_who_waits),
	    cmocka_unit_test(test_python),
	    cmocka_unit_test(test_nobody),
	};
	return cmocka_run_group_tests_name("waiting", tests, NULL, NULL);
}
