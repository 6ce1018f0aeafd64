/* One open call that makes everything, and its look-alike: many calls that each leave a little. */
#include "model/world.h"

#include "model/callsite/open_call.h"

static void read_calls(struct world *w)
{
	struct err err;

	look(w);
	assert_int_equal(open_call_read(script_feed(w->s), w->p, &err), 0);
}

static const struct callsite *callsite_of(const struct world *t, const char *function)
{
	for (uint32_t i = 0; i < t->p->count; i++)
		if (strcmp(t->p->list[i].function, function) == 0)
			return &t->p->list[i];
	fail();
	return NULL;
}

/* Small requests that end, then one that makes everything, by the same function or another that
 * it calls. */
static void test_after_calls_that_ended(void **state)
{
	for (int same = 0; same < 2; same++) {
		struct world t = {.s = script_new()};
		uint32_t few = script_stack(t.s, "main@/a.c:9;answer@/a.c:20;fetch@/a.c:30");
		uint32_t all = script_stack(t.s, same ? "main@/a.c:10;answer@/a.c:21;fetch@/a.c:30"
						      : "main@/a.c:10;answer@/a.c:22;load@/a.c:40");

		for (int i = 0; i < 50; i++) {
			script_release(
			    t.s, script_alloc(t.s, script_stack(t.s, "main@/a.c:8"), 80));
			script_release(t.s, script_alloc(t.s, few, 5000));
		}
		for (int i = 0; i < 5000; i++)
			script_alloc(t.s, all, 5000);
		read_calls(&t);
		assert_int_equal(
		    callsite_of(&t, same ? "fetch" : "load")->call.open, OPEN_CALL_YES);
		assert_true(callsite_of(&t, same ? "fetch" : "load")->call.ended_before >= 49);
		assert_true(callsite_of(&t, same ? "fetch" : "load")->call.repeats);
		end(&t);
	}
	(void)state;
}

/* Another way led to it for a while, and all its blocks were released: at its end, as the open
 * call's will be; or at each step, which does not tell the present owner. */
static void test_after_one_that_held_less(void **state)
{
	for (int stepwise = 0; stepwise < 2; stepwise++) {
		struct world t = {.s = script_new()};
		uint32_t warm = script_stack(t.s, "main@/a.c:9;serve@/a.c:20;step@/a.c:30");
		uint32_t serve = script_stack(t.s, "main@/a.c:11;serve@/a.c:20;step@/a.c:30");
		static uint64_t made[400];

		for (int i = 0; i < 400; i++) {
			made[i] = script_alloc(t.s, warm, 5000);
			if (stepwise)
				script_release(t.s, made[i]);
		}
		for (int i = 0; i < 400 && !stepwise; i++)
			script_release(t.s, made[i]);
		script_release(t.s, script_alloc(t.s, script_stack(t.s, "main@/a.c:10"), 80));
		for (int i = 0; i < 5000; i++)
			script_alloc(t.s, serve, 5000);
		read_calls(&t);
		assert_int_equal(
		    callsite_of(&t, "step")->call.open, stepwise ? OPEN_CALL_MAYBE : OPEN_CALL_YES);
		end(&t);
	}
	(void)state;
}

/* A call that runs an event loop is one call, however many tasks end in it: their leftovers are
 * not its habit. Called by the tasks, it is one call of each. */
static void test_tasks_inside(void **state)
{
	static const char loop[] = "@/usr/lib/python3/asyncio/events.py:80";

	for (int called = 0; called < 2; called++) {
		struct world t = {.s = script_new()};
		uint32_t keep = script_stack(t.s, "main@/a.py:9;settle@/a.py:3;ledger@/a.py:30");
		uint32_t ask = script_stack(t.s, "main@/a.py:9;settle@/a.py:4;ask@/a.py:40");
		char inside[200];

		snprintf(inside, sizeof(inside),
		    called ? "main@/a.py:8;_run%s;settle@/a.py:4;step@/a.py:20"
			   : "main@/a.py:8;settle@/a.py:4;_run%s;step@/a.py:20",
		    loop);
		for (uint32_t task = 1; task <= 10; task++) {
			script_thread(t.s, 1, task);
			script_release(t.s, script_alloc(t.s, script_stack(t.s, inside), 5000));
			script_event(t.s, EV_TASK_END, 0);
		}
		script_thread(t.s, 1, 0);
		for (int i = 0; i < 300; i++) {
			script_alloc(t.s, keep, 500000);
			script_release(t.s, script_alloc(t.s, ask, 5000));
		}
		read_calls(&t);
		assert_int_equal(callsite_of(&t, "ledger")->call.open == OPEN_CALL_YES, called);
		end(&t);
	}
	(void)state;
}

/* An event loop calls all of its tasks by the same frames: tasks that ended before were other
 * calls, and released their blocks. */
static void test_tasks_before(void **state)
{
	struct world t = {.s = script_new()};
	uint32_t rows = script_stack(t.s,
	    "main@/a.py:9;_run@/usr/lib/python3/asyncio/events.py:80;answer@/a.py:4;rows@/a.py:5");

	for (uint32_t task = 1; task <= 10; task++) {
		script_thread(t.s, 1, task);
		script_release(t.s, script_alloc(t.s, rows, 5000));
		script_event(t.s, EV_TASK_END, 0);
	}
	script_thread(t.s, 1, 11);
	for (int i = 0; i < 300; i++)
		script_alloc(t.s, rows, 500000);
	read_calls(&t);
	assert_int_equal(callsite_of(&t, "rows")->call.open, OPEN_CALL_YES);
	assert_string_equal(callsite_of(&t, "rows")->call.function->function, "rows");
	assert_int_equal(callsite_of(&t, "rows")->call.ended_before, 10);
	end(&t);
	(void)state;
}

/* The same rows, a few for each of many requests: the way is left between two of them. */
static void test_many_calls(void **state)
{
	struct world t = {.s = script_new()};
	uint32_t row = script_stack(t.s, "main@/a.c:9;answer@/a.c:20;fetch@/a.c:30");

	for (int i = 0; i < 500; i++) {
		script_release(t.s, script_alloc(t.s, script_stack(t.s, "main@/a.c:8"), 80));
		for (int k = 0; k < 10; k++)
			script_alloc(t.s, row, 5000);
	}
	read_calls(&t);
	assert_int_equal(callsite_of(&t, "fetch")->call.open, OPEN_CALL_NO);
	end(&t);
	(void)state;
}

/* Only the growth is ever seen: a loop inside the function, or around it? The question does not
 * arise in the outermost function. */
static void test_nothing_else_seen(void **state)
{
	static const char *const stacks[] = {"main@/a.c:9;grow@/a.c:3", "main@/a.c:9"};

	for (int i = 0; i < 2; i++) {
		struct world t = {.s = script_new()};

		for (int n = 0; n < 1000; n++)
			script_alloc(t.s, script_stack(t.s, stacks[i]), 5000);
		read_calls(&t);
		assert_int_equal(callsite_of(&t, i ? "main" : "grow")->call.open,
		    i ? OPEN_CALL_NO : OPEN_CALL_MAYBE);
		end(&t);
	}
	(void)state;
}

/* A comprehension's own table grows beside its blocks: no other code can hold it yet. Another
 * function's table may be a list that outlives the call. */
static void test_comprehension(void **state)
{
	for (int own = 0; own < 2; own++) {
		struct world t = {.s = script_new()};
		const char *rows = "<module>@/a.py:9;tool@/a.py:5;fetch@/a.py:3;"
				   "fetch.<locals>.<listcomp>@/a.py:3";
		uint32_t row = script_stack(t.s, rows);
		uint32_t table = script_stack(
		    t.s, own ? "<module>@/a.py:9;tool@/a.py:5;fetch@/a.py:3;"
			       "fetch.<locals>.<listcomp>@/a.py:3;list_resize@/lib/libpython3.so"
			     : "<module>@/a.py:9;tool@/a.py:6");
		uint64_t list = script_alloc(t.s, table, 512), room = 64;

		for (uint64_t n = 0; n < 4000; n++) {
			script_alloc(t.s, row, 5000);
			if (n == room) {
				room += room / 4;
				list = script_realloc(t.s, list, table, 8 * room);
			}
		}
		read_calls(&t);
		assert_int_equal(
		    callsite_of(&t, "fetch")->call.open, own ? OPEN_CALL_YES : OPEN_CALL_NO);
		if (own)
			assert_string_equal(
			    callsite_of(&t, "fetch")->call.function->function, "fetch");
		end(&t);
	}
	(void)state;
}

/* The same when a user's function makes the gathered blocks: only the evaluation's table grew
 * along. A second table may hold what each call left. */
static void test_comprehension_of_calls(void **state)
{
	for (int rival = 0; rival < 2; rival++) {
		struct world t = {.s = script_new()};
		const char *list =
		    "<module>@/a.py:9;embed_all@/a.py:5;embed_all.<locals>.<listcomp>"
		    "@/a.py:5;list_resize@/lib/libpython3.so";
		const char *call =
		    "<module>@/a.py:9;embed_all@/a.py:5;embed_all.<locals>.<listcomp>"
		    "@/a.py:5;embed@/a.py:2";
		uint32_t made = script_stack(t.s, call);
		uint32_t tables[2] = {script_stack(t.s, list),
		    script_stack(t.s, "<module>@/a.py:9;embed_all@/a.py:5;embed_all.<locals>."
				      "<listcomp>@/a.py:5;note@/a.py:30")};
		uint64_t at[2] = {script_alloc(t.s, tables[0], 512)}, room = 64;

		if (rival)
			at[1] = script_alloc(t.s, tables[1], 512);
		for (uint64_t n = 0; n < 4000; n++) {
			script_alloc(t.s, made, 50000);
			if (n != room)
				continue;
			room += room / 4;
			for (int k = 0; k <= rival; k++)
				at[k] = script_realloc(t.s, at[k], tables[k], 8 * room);
		}
		read_calls(&t);
		if (rival)
			assert_int_not_equal(callsite_of(&t, "embed")->call.open, OPEN_CALL_YES);
		else
			assert_int_equal(callsite_of(&t, "embed")->call.open, OPEN_CALL_YES);
		assert_false(callsite_of(&t, "embed")->call.repeats);
		end(&t);
	}
	(void)state;
}

/* Without its table, as on a device: the evaluation owns what it makes itself; other code may
 * keep what a function makes for it. */
static void test_comprehension_alone(void **state)
{
	for (int own = 0; own < 2; own++) {
		struct world t = {.s = script_new()};
		uint32_t row = script_stack(t.s, own ? "<module>@/a.py:9;fetch@/a.py:3;"
						       "fetch.<locals>.<listcomp>@/a.py:3"
						     : "<module>@/a.py:9;fetch@/a.py:3;"
						       "fetch.<locals>.<listcomp>@/a.py:3;"
						       "serve@/a.py:6");

		for (uint64_t n = 0; n < 4000; n++)
			script_alloc(t.s, row, 5000);
		read_calls(&t);
		if (own)
			assert_int_equal(callsite_of(&t, "fetch")->call.open, OPEN_CALL_YES);
		else
			assert_int_not_equal(callsite_of(&t, "serve")->call.open, OPEN_CALL_YES);
		end(&t);
	}
	(void)state;
}

/* An arena counts for the maker of its first object: most for a function that the evaluation
 * calls, some for the evaluation itself, so all belong to one call. For blocks each maker is
 * known. */
static void test_arenas_of_a_comprehension(void **state)
{
	for (int arenas = 0; arenas < 2; arenas++) {
		struct world t = {.s = script_new()};
		uint32_t row = script_stack(t.s, "<module>@/a.py:9;export@/a.py:3;"
						 "export.<locals>.<listcomp>@/a.py:3;rows@/a.py:1");
		uint32_t own = script_stack(t.s, "<module>@/a.py:9;export@/a.py:3;"
						 "export.<locals>.<listcomp>@/a.py:3");

		for (uint64_t n = 0; n < 400; n++) {
			uint32_t stack = n % 9 < 5 ? row : own;

			if (arenas)
				script_map(t.s, stack, MiB, 0, TRACE_BACKING_ANON);
			else
				script_alloc(t.s, stack, MiB);
		}
		read_calls(&t);
		if (arenas)
			assert_int_equal(callsite_of(&t, "rows")->call.open, OPEN_CALL_YES);
		else
			assert_int_not_equal(callsite_of(&t, "rows")->call.open, OPEN_CALL_YES);
		end(&t);
	}
	(void)state;
}

/* An unknown stack proves nothing. */
static void test_unknown_stacks(void **state)
{
	struct world t = {.s = script_new()};
	uint32_t row = script_stack(t.s, "main@/a.c:9;grow@/a.c:3");

	for (int n = 0; n < 1000; n++) {
		script_alloc(t.s, row, 5000);
		script_release(t.s, script_alloc(t.s, 0, 50));
	}
	read_calls(&t);
	assert_int_equal(callsite_of(&t, "grow")->call.open, OPEN_CALL_MAYBE);
	end(&t);
	(void)state;
}

/* A cache's callee is not seen to end as soon as its caller makes nothing else; but each of
 * those calls left a page. */
static void test_calls_that_left(void **state)
{
	struct world t = {.s = script_new()};
	uint32_t page =
	    script_stack(t.s, "main@/a.c:9;serve@/a.c:15;cached@/lib/libpython.so;page@/a.c:10");

	for (int i = 0; i < 5000; i++) {
		if (i < 20)
			script_release(
			    t.s, script_alloc(t.s, script_stack(t.s, "main@/a.c:8"), 80));
		script_release(t.s, script_alloc(t.s, page, 160000));
		script_alloc(t.s, page, 160000);
	}
	read_calls(&t);
	assert_int_not_equal(callsite_of(&t, "page")->call.open, OPEN_CALL_YES);
	end(&t);
	(void)state;
}

/* Requests map an arena now and then, and only some of them are seen to end: arenas come at the
 * same pace, so the others ended, too. An open call maps all of them at once. */
static void test_arenas_at_one_pace(void **state)
{
	for (int once = 0; once < 2; once++) {
		struct world t = {.s = script_new()};
		uint32_t answer =
		    script_stack(t.s, "<module>@/a.py:9;serve@/a.py:7;answer@/a.py:5");

		for (int i = 0; i < 6000; i++) {
			if (i < 60)
				script_release(t.s,
				    script_alloc(t.s, script_stack(t.s, "<module>@/a.py:8"), 80));
			for (int k = 0; k < 10 && (i < 60 || !once); k++)
				script_release(t.s, script_alloc(t.s, answer, 5000));
			if (i % 10 == 0)
				script_map(t.s, answer, MiB, 0, TRACE_BACKING_ANON);
		}
		read_calls(&t);
		if (once)
			assert_int_equal(callsite_of(&t, "answer")->call.open, OPEN_CALL_YES);
		else
			assert_int_not_equal(callsite_of(&t, "answer")->call.open, OPEN_CALL_YES);
		end(&t);
	}
	(void)state;
}

/* Arenas of earlier calls stay, for the next to use; their lists are gone. */
static void test_lists_beside_arenas(void **state)
{
	struct world t = {.s = script_new()};
	uint32_t answer = script_stack(t.s, "<module>@/a.py:9;serve@/a.py:7;answer@/a.py:5");

	for (int i = 0; i < 50; i++) {
		script_release(t.s, script_alloc(t.s, script_stack(t.s, "<module>@/a.py:8"), 80));
		for (int k = 0; k < 10; k++)
			script_release(t.s, script_alloc(t.s, answer, 5000));
		if (i < 40)
			script_map(t.s, answer, MiB, 0, TRACE_BACKING_ANON);
	}
	for (int i = 0; i < 4000; i++) {
		script_alloc(t.s, answer, 5000);
		if (i % 2)
			script_map(t.s, answer, MiB, 0, TRACE_BACKING_ANON);
	}
	read_calls(&t);
	assert_int_equal(callsite_of(&t, "answer")->call.open, OPEN_CALL_YES);
	end(&t);
	(void)state;
}

/* A pool's threads run one user's function, each once, or one of them repeatedly. If its calls
 * were seen to end or released everything, growth belongs to one call; not if each call leaves
 * some, or if it may be the thread's loop. */
static enum open_call worker_builds_up(uint32_t calls, uint32_t threads, bool leaves)
{
	struct world t = {.s = script_new()};
	uint32_t tool = script_stack(t.s, "run@/lib/libpool.so;tool@/a.c:30");
	uint64_t made[4];
	enum open_call call;

	for (uint32_t i = 0; i < calls; i++) {
		script_thread(t.s, 2 + i % threads, 0);
		for (int k = 0; k < 4; k++)
			made[k] = script_alloc(t.s, tool, 5000);
		for (int k = 0; k < 4 && !leaves; k++)
			script_release(t.s, made[k]);
		if (threads > 1)
			script_event(t.s, EV_THREAD_EXIT, 0);
	}
	script_thread(t.s, 2 + calls % threads, 0);
	for (int i = 0; i < (leaves ? 4 : 5000); i++)
		script_alloc(t.s, tool, 5000);
	read_calls(&t);
	call = callsite_of(&t, "tool")->call.open;
	end(&t);
	return call;
}

static void test_worker(void **state)
{
	assert_int_equal(worker_builds_up(4, 100, false), OPEN_CALL_YES);
	assert_int_equal(worker_builds_up(300, 1, false), OPEN_CALL_YES);
	assert_int_equal(worker_builds_up(0, 1, false), OPEN_CALL_NO);
	assert_int_equal(worker_builds_up(200, 1, true), OPEN_CALL_NO);
	assert_int_equal(worker_builds_up(200, 300, true), OPEN_CALL_NO);
	(void)state;
}

/* Each call leaves a little more than the one before, and few are seen to end: every step begins
 * to grow before it is over, which does not show that they left nothing. */
static void test_slow_beginning(void **state)
{
	struct world t = {.s = script_new()};
	uint32_t copy = script_stack(t.s, "main@/a.c:9;save@/a.c:30;copy@/lib/libc.so.6");
	uint32_t other = script_stack(t.s, "main@/a.c:5;plan@/a.c:40");

	for (int n = 0; n < 3000; n++) {
		script_step(t.s, n < 60 ? 1000000 : 20000);
		if (n < 6)
			script_release(t.s, script_alloc(t.s, other, 50));
		script_alloc(t.s, copy, 5000);
	}
	read_calls(&t);
	assert_int_not_equal(callsite_of(&t, "save")->call.open, OPEN_CALL_YES);
	end(&t);
	(void)state;
}

/* Only one call site is seen, but its piles come and go; then one stays, of the same way or
 * another. If each pile left a little, or piles go on meanwhile, the rest belongs to no open
 * call. */
static void test_piles(void **state)
{
	enum { SAME, OTHER_WAY, LEAVES, GOES_ON };

	for (int how = SAME; how <= GOES_ON; how++) {
		struct world t = {.s = script_new()};
		uint32_t few = script_stack(t.s, "main@/a.c:9;parse@/a.c:5;node@/a.c:3");
		uint32_t all =
		    how == SAME ? few : script_stack(t.s, "main@/a.c:10;parse@/a.c:5;node@/a.c:3");

		for (int i = 0; i < (how == LEAVES ? 300 : 20); i++) {
			uint64_t pile[40];

			for (int k = 0; k < 40; k++)
				pile[k] = script_alloc(t.s, few, 5000);
			for (int k = how == LEAVES ? 10 : 0; k < 40; k++)
				script_release(t.s, pile[k]);
		}
		for (int i = 0; i < 3000 && how != LEAVES; i++) {
			uint64_t pile[4];

			script_alloc(t.s, all, 5000);
			for (int k = 0; k < 4 && how == GOES_ON; k++)
				pile[k] = script_alloc(t.s, few, 5000);
			for (int k = 0; k < 4 && how == GOES_ON; k++)
				script_release(t.s, pile[k]);
		}
		read_calls(&t);
		if (how <= OTHER_WAY) {
			assert_int_equal(callsite_of(&t, "node")->call.open, OPEN_CALL_YES);
			assert_true(callsite_of(&t, "node")->call.ended_before >= 19);
		} else {
			assert_int_not_equal(callsite_of(&t, "node")->call.open, OPEN_CALL_YES);
		}
		end(&t);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_after_one_that_held_less),
	    cmocka_unit_test(test_after_calls_that_ended),
	    cmocka_unit_test(test_tasks_inside),
	    cmocka_unit_test(test_tasks_before),
	    cmocka_unit_test(test_many_calls),
	    cmocka_unit_test(test_nothing_else_seen),
	    cmocka_unit_test(test_comprehension),
	    cmocka_unit_test(test_comprehension_of_calls),
	    cmocka_unit_test(test_arenas_of_a_comprehension),
	    cmocka_unit_test(test_arenas_at_one_pace),
	    cmocka_unit_test(test_lists_beside_arenas),
	    cmocka_unit_test(test_comprehension_alone),
	    cmocka_unit_test(test_unknown_stacks),
	    cmocka_unit_test(test_calls_that_left),
	    cmocka_unit_test(test_worker),
	    cmocka_unit_test(test_slow_beginning),
	    cmocka_unit_test(test_piles),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
