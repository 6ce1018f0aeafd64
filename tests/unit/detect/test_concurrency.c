/* Speaks of several requests' working sets at once; not of one, nor of blocks that stay. */
#include "detect/scene.h"

#define SIZE 500000u

/* Requests one at a time on one thread, then many that overlap, each on its own thread. */
static void serve(struct staged *t, uint32_t before, uint32_t overlap, uint32_t threads)
{
	uint32_t work = script_stack(t->s, "main;answer");

	script_alloc(t->s, script_stack(t->s, "main;load"), 1000000);
	for (uint32_t i = 0; i < before; i++) {
		uint64_t at = script_alloc(t->s, work, SIZE);

		script_wait(t->s, 10000000);
		script_release(t->s, at);
	}
	for (uint32_t i = 0; i < overlap; i++) {
		script_thread(t->s, 2 + i % threads, 0);
		script_alloc(t->s, work, SIZE);
	}
	script_failed(t->s, work, SIZE);
	stage(t, detect_concurrency, true);
}

static void test_threads(void **state)
{
	struct staged t = {.s = script_new()};

	serve(&t, 200, 8, 8);
	assert_int_equal(t.rc, 0);
	assert_string_equal(blamed(&t), "answer");
	assert_true(t.f.strength >= 0.75);
	assert_int_equal(t.f.bytes, 7 * SIZE);
	strike(&t);
	(void)state;
}

/* The refused request would have been made after the others' release, as far as it takes no more
 * than the largest of them holds. */
static void test_asked_beside(void **state)
{
	static const struct {
		uint64_t size, claimed;
	} of[] = {{SIZE, SIZE}, {SIZE / 2, SIZE / 2}, {3 * SIZE, SIZE}};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		struct staged t = {.s = script_new()};
		uint32_t work = script_stack(t.s, "main;answer");

		for (uint32_t k = 0; k < 200; k++)
			script_release(t.s, script_alloc(t.s, work, SIZE));
		for (uint32_t k = 0; k < 6; k++) {
			script_thread(t.s, 2 + k, 0);
			script_alloc(t.s, work, SIZE);
		}
		script_thread(t.s, 9, 0);
		script_failed(t.s, work, of[i].size);
		stage(&t, detect_concurrency, true);
		assert_int_equal(t.rc, 0);
		assert_int_equal(t.f.bytes, 5 * SIZE);
		assert_int_equal(t.f.request_bytes, of[i].claimed);
		strike(&t);
	}
	(void)state;
}

/* One thread holds a request's memory, and another asks at the same line for the first time; the
 * same thread asking once more is one request. */
static void test_asked_first(void **state)
{
	for (int other = 0; other < 2; other++) {
		struct staged t = {.s = script_new(), .scene = {.space = "cuda:0"}};
		uint32_t work = script_stack(t.s, "main;answer");

		for (uint32_t k = 0; k < 200; k++)
			script_release(t.s, script_alloc(t.s, work, SIZE / 100));
		script_thread(t.s, 2, 0);
		for (uint32_t k = 0; k < 3; k++)
			script_alloc(t.s, work, SIZE);
		script_thread(t.s, other ? 3 : 2, 0);
		script_failed(t.s, work, SIZE);
		t.scene.limit.bytes = 4 * SIZE - 1;
		stage(&t, detect_concurrency, true);
		if (other) {
			assert_int_equal(t.rc, 0);
			assert_string_equal(blamed(&t), "answer");
			assert_int_equal(t.f.bytes, 3 * SIZE);
			assert_int_equal(t.f.request_bytes, SIZE);
			assert_true(t.f.strength > 0.5);
		} else {
			assert_true(t.rc == DETECT_SILENT || t.f.strength < 0.3);
		}
		strike(&t);
	}
	(void)state;
}

/* The burst is larger than all the work before it; nor is it weights. */
static void test_larger_than_before(void **state)
{
	struct staged t = {.s = script_new(), .scene = {.space = "torch:0"}};

	serve(&t, 20, 60, 6);
	assert_int_equal(t.rc, 0);
	assert_true(t.f.strength >= 0.75);
	assert_int_equal(t.f.bytes, 50 * SIZE);
	assert_true(detect_oversized_model(&t.scene, &t.f) == DETECT_SILENT || t.f.strength < 0.1);
	strike(&t);
	(void)state;
}

/* Each thread has a stack, which is address space for as long as the request lives. Threads
 * without a known end may exist anyway. In a sample any thread may work. */
static void test_stacks(void **state)
{
	static const struct {
		uint64_t threads;
		bool sampled;
		uint64_t stacks;
	} tries[] = {{8, false, 7}, {32, false, 7}, {32, true, 31}, {0, false, 0}};

	for (size_t i = 0; i < sizeof(tries) / sizeof(*tries); i++) {
		struct staged t = {.s = script_new(),
		    .scene = {.limit.stacks = tries[i].threads * SIZE,
			.limit.threads = tries[i].threads,
			.sample_every = tries[i].sampled ? 512 << 10 : 0}};

		serve(&t, 200, 8, 8);
		assert_int_equal(t.rc, 0);
		assert_int_equal(t.f.other_bytes, tries[i].stacks * SIZE);
		strike(&t);
	}
	(void)state;
}

/* A thread for each request, which ends with it, and one more is refused its stack: all but one of
 * the stacks. Most of them stay if half as many had ended; not for another refusal. */
static void test_threads_end(void **state)
{
	static const struct {
		uint64_t ended;
		bool thread;
	} of[] = {{100, true}, {10, true}, {0, true}, {100, false}};
	double strength[4];

	for (int n = 0; n < 4; n++) {
		struct staged t = {.s = script_new(),
		    .scene.limit = {
			.stacks = 20 * 8 * MiB, .threads = 20, .threads_ended = of[n].ended}};
		uint32_t begin = script_stack(t.s, "main;accept"),
			 work = script_stack(t.s, "main;answer");

		for (int i = 0; i < 100; i++)
			script_release(t.s, script_alloc(t.s, work, 20000));
		script_alloc(t.s, script_stack(t.s, "main;load"), MiB);
		if (of[n].thread)
			script_failed_thread(t.s, begin, 8 * MiB);
		else
			script_failed(t.s, begin, 8 * MiB);
		stage(&t, detect_concurrency, true);
		strength[n] = t.rc ? 0 : t.f.strength;
		if (!t.rc) {
			assert_int_equal(t.f.form, FORM_STACKS);
			assert_string_equal(blamed(&t), "accept");
			assert_int_equal(t.f.other_bytes, 19 * 8 * MiB);
		}
		strike(&t);
	}
	assert_true(strength[0] > 0.95 && strength[1] > 0.2 && strength[1] < 0.3);
	assert_true(strength[2] == 0 && strength[3] == 0);
	(void)state;
}

/* Fewer have ended than there are now: those that began first, so that the others came at once; or
 * some of each time, so that the others stay. */
static void test_threads_come_at_once(void **state)
{
	double end[2];

	for (int some = 0; some < 2; some++) {
		struct staged t = {.s = script_new(),
		    .scene.limit = {.stacks = 40 * 8 * MiB, .threads = 40, .threads_ended = 16}};
		uint32_t work = script_stack(t.s, "main;answer");

		script_alloc(t.s, script_stack(t.s, "main;load"), MiB);
		for (uint32_t i = 0; i < 56; i++) {
			uint64_t block;

			script_thread(t.s, 2 + i, 0);
			block = script_alloc(t.s, work, 20000);
			if (some ? i % 7 < 2 : i < 16) {
				script_release(t.s, block);
				script_event(t.s, EV_THREAD_EXIT, 0);
			}
		}
		script_thread(t.s, 1, 0);
		script_failed_thread(t.s, script_stack(t.s, "main;accept"), 8 * MiB);
		stage(&t, detect_concurrency, true);
		end[some] = scene_threads_end(&t.scene);
		/* Their stacks are far more than what they hold, so who starts them is blamed. */
		if (!some) {
			assert_int_equal(t.rc, 0);
			assert_int_equal(t.f.form, FORM_STACKS);
			assert_string_equal(blamed(&t), "accept");
			assert_int_equal(finding_fact(&t.f, FACT_THREADS), 40);
			assert_true(t.f.bytes > 0);
		}
		strike(&t);
	}
	assert_true(end[0] == 1 && end[1] > 0.15 && end[1] < 0.17);
	(void)state;
}

/* Processes of one pool, under a common limit: each one's working set. Leftovers are no work; a
 * block that is large in one of them is small beside the others. */
static void test_workers(void **state)
{
	for (int leaks = 0; leaks < 2; leaks++) {
		struct staged t = {.s = script_new(),
		    .scene = {.others.workers = {7, 700000000}, .limit.bytes = 800000000}};
		uint32_t work = script_stack(t.s, "main;answer;embed");
		struct finding f;

		for (int i = 0; i < 200; i++) {
			uint64_t at = script_alloc(t.s, work, SIZE);

			script_wait(t.s, 1000000);
			if (!leaks)
				script_release(t.s, at);
		}
		if (!leaks)
			script_alloc(t.s, work, 200 * SIZE);
		stage(&t, detect_concurrency, true);
		assert_int_equal(t.rc, leaks ? DETECT_SILENT : 0);
		if (!leaks) {
			assert_string_equal(blamed(&t), "embed");
			assert_int_equal(t.f.other_bytes, 700000000);
			assert_int_equal(t.f.workers, 8);
			assert_true(t.f.strength >= 0.8);
			assert_int_equal(detect_oversized_intermediate(&t.scene, &f), 0);
			assert_true(f.strength < 0.3);
			t.scene.others.workers = (struct scene_workers){0};
			assert_int_equal(detect_oversized_intermediate(&t.scene, &f), 0);
			assert_true(f.strength > 0.8);
		}
		strike(&t);
	}
	(void)state;
}

/* One request counts once, however many blocks it makes. */
static void test_one_thread(void **state)
{
	struct staged t = {.s = script_new()};

	serve(&t, 200, 8, 1);
	assert_int_equal(t.rc, DETECT_SILENT);
	strike(&t);
	(void)state;
}

/* Tasks of one thread are as good as threads. */
static void test_tasks(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t work = script_stack(t.s, "loop;answer");

	for (uint32_t i = 1; i <= 20; i++) {
		script_thread(t.s, 1, i);
		for (int k = 0; k < 10; k++)
			script_alloc(t.s, work, SIZE / 10);
	}
	script_failed(t.s, work, SIZE);
	stage(&t, detect_concurrency, true);
	assert_int_equal(t.rc, 0);
	assert_int_equal(t.f.bytes, 19 * SIZE);
	assert_int_equal(finding_fact(&t.f, FACT_AT_ONCE), 20);
	strike(&t);
	(void)state;
}

/* A few waiting requests hold far more than the many that the total mostly consists of: these
 * count. */
static void test_many_small(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t work = script_stack(t.s, "loop;answer");

	for (uint32_t i = 1; i <= 100; i++) {
		script_thread(t.s, 1, i);
		for (int k = 0; k < (i <= 2 ? 100 : 10); k++)
			script_alloc(t.s, work, SIZE / 100);
	}
	script_failed(t.s, work, SIZE);
	stage(&t, detect_concurrency, true);
	assert_int_equal(t.rc, 0);
	assert_int_equal(t.held.alike, 2);
	assert_in_range((uint64_t)finding_fact(&t.f, FACT_AT_ONCE), 80, 100);
	strike(&t);
	(void)state;
}

/* Blocks that each task left at its end are no working set; nor are a thread's. */
static void leaves_behind(bool tasks)
{
	struct staged t = {.s = script_new()};
	uint32_t keep = script_stack(t.s, "loop;keep"), work = script_stack(t.s, "loop;work");

	for (uint32_t i = 1; i <= 40; i++) {
		uint64_t at;

		script_thread(t.s, tasks ? 1 : i, tasks ? i : 0);
		at = script_alloc(t.s, work, SIZE);
		script_alloc(t.s, keep, SIZE / 4);
		script_release(t.s, at);
		script_event(t.s, tasks ? EV_TASK_END : EV_THREAD_EXIT, 0);
	}
	script_failed(t.s, keep, SIZE);
	stage(&t, detect_concurrency, true);
	assert_int_equal(t.rc, DETECT_SILENT);
	strike(&t);
}

static void test_leak(void **state)
{
	leaves_behind(true);
	leaves_behind(false);
	(void)state;
}

/* Workers that live long: leftovers of their rounds are not in hand. */
static void test_workers_leak(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t keep = script_stack(t.s, "pool;keep"), work = script_stack(t.s, "pool;work");

	for (uint32_t i = 0; i < 400; i++) {
		uint64_t at;

		script_thread(t.s, 2 + i % 4, 0);
		at = script_alloc(t.s, work, SIZE);
		script_alloc(t.s, keep, SIZE / 4);
		script_release(t.s, at);
	}
	script_failed(t.s, keep, SIZE);
	stage(&t, detect_concurrency, true);
	assert_true(t.rc == DETECT_SILENT || t.f.bytes < (uint64_t)400 * SIZE / 4 / 50);
	strike(&t);
	(void)state;
}

/* A huge request among small ones. */
static void test_one_huge(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t work = script_stack(t.s, "main;answer");

	for (uint32_t i = 0; i < 10; i++) {
		script_thread(t.s, 2 + i, 0);
		for (uint32_t k = 0; k < (i == 5 ? 100 : 1); k++)
			script_alloc(t.s, work, SIZE);
	}
	script_failed(t.s, work, SIZE);
	stage(&t, detect_concurrency, true);
	assert_int_equal(t.rc, DETECT_SILENT);
	strike(&t);
	(void)state;
}

/* Jobs that wait for a slow worker are in flight, and no leak; unless as much lived before, while
 * jobs came: then there are as many as usual. */
static void test_queue(void **state)
{
	double strength[2];

	for (int usual = 0; usual < 2; usual++) {
		struct staged t = {.s = script_new()};
		uint32_t job = script_stack(t.s, "main;produce");
		uint64_t jobs[400], reload = 0;

		for (uint32_t i = 0; i < 400; i++) {
			script_thread(t.s, 1, 0);
			jobs[i] = script_alloc(t.s, job, SIZE);
			script_wait(t.s, 1000000);
			script_thread(t.s, 2, 0);
			if (i % 4 == 0)
				script_release(t.s, jobs[i / 4]);
			if (usual && i == 80)
				reload =
				    script_alloc(t.s, script_stack(t.s, "main;reload"), 180 * SIZE);
			if (usual && i == 120)
				script_release(t.s, reload);
		}
		script_failed(t.s, job, SIZE);
		stage(&t, detect_concurrency, true);
		assert_int_equal(t.rc, 0);
		assert_string_equal(blamed(&t), "produce");
		assert_int_equal(t.f.bytes, 299 * SIZE);
		assert_int_equal(t.f.form, FORM_BACKLOG);
		strength[usual] = t.f.strength;
		strike(&t);
	}
	assert_true(strength[0] > 0.9 && strength[1] < 0.3);
	(void)state;
}

/* Working threads hold mostly small objects, in arenas without an owner: the larger blocks of
 * the same line tell the owner, if there are enough. */
static void test_arenas(void **state)
{
	for (uint32_t tables = 0; tables <= 3; tables += 3) {
		struct staged t = {.s = script_new()};
		uint32_t work = script_stack(t.s, "main;parse"),
			 early = script_stack(t.s, "main;warm");
		struct finding leak;

		for (int i = 0; i < 100; i++)
			script_release(t.s, script_alloc(t.s, early, 6000));
		for (uint32_t i = 0; i < 240; i++) {
			script_thread(t.s, 2 + i % 24, 0);
			script_map(t.s, work, 1 << 20, 0, TRACE_BACKING_ANON);
			for (uint32_t k = 0; k < tables; k++)
				script_alloc(t.s, work, 6000);
		}
		script_failed(t.s, work, 1 << 20);
		stage(&t, detect_concurrency, true);
		for (uint32_t i = 0; i < t.p->count; i++)
			t.p->list[i].arena_share.any = strcmp(t.p->list[i].function, "parse") == 0;
		memset(&t.f, 0, sizeof(t.f));
		t.rc = detect_concurrency(&t.scene, &t.f);
		if (tables) {
			assert_int_equal(t.rc, 0);
			assert_string_equal(blamed(&t), "parse");
			assert_true(t.f.strength > 0.75);
			assert_true(t.f.bytes > 220u << 20);
			assert_true(
			    detect_leak(&t.scene, &leak) == DETECT_SILENT || leak.strength < 0.4);
		} else {
			assert_int_equal(t.rc, DETECT_SILENT);
		}
		strike(&t);
	}
	(void)state;
}

/* Tasks hold small objects, in arenas that another line happened to need: the arrays that list them
 * are all in hand, or most of them were left by tasks that ended. */
static void test_arenas_elsewhere(void **state)
{
	for (int leaks = 0; leaks < 2; leaks++) {
		struct staged t = {.s = script_new()};
		uint32_t session = script_stack(t.s, "loop;session"),
			 step = script_stack(t.s, "loop;step"),
			 other = script_stack(t.s, "loop;other");
		struct finding leak;

		for (uint32_t i = 0; i < 400; i++) {
			bool open = !leaks && i >= 100;
			uint64_t array, first;

			script_thread(t.s, 1, 1 + i);
			first = script_alloc(t.s, other, 9000);
			array = script_alloc(t.s, session, 18000);
			if (i % 2)
				script_map(t.s, step, 1 << 20, 0, TRACE_BACKING_ANON);
			if (open)
				continue;
			script_release(t.s, first);
			if (!leaks)
				script_release(t.s, array);
			script_event(t.s, EV_TASK_END, 0);
		}
		script_failed(t.s, step, 1 << 20);
		stage(&t, detect_concurrency, true);
		for (uint32_t i = 0; i < t.p->count; i++)
			t.p->list[i].arena_share.any = strcmp(t.p->list[i].function, "step") == 0;
		memset(&t.f, 0, sizeof(t.f));
		t.rc = detect_concurrency(&t.scene, &t.f);
		assert_int_equal(detect_leak(&t.scene, &leak), 0);
		if (leaks) {
			assert_true(t.rc == DETECT_SILENT || t.f.bytes < 20u << 20);
			assert_true(leak.strength > 0.5);
		} else {
			assert_int_equal(t.rc, 0);
			assert_string_equal(blamed(&t), "session");
			assert_true(t.f.strength > 0.75);
			assert_true(t.f.bytes > 180u << 20);
			assert_true(leak.strength < 0.4);
		}
		strike(&t);
	}
	(void)state;
}

/* Streams with work in flight, of which one at a time would have fit; a few may be a pipeline. */
static void test_streams(void **state)
{
	static uint64_t others[8];

	for (uint32_t alike = 3; alike <= 12; alike += 9) {
		struct staged t = {.s = script_new(),
		    .scene = {.space = "pool:0", .streams = {alike, alike * SIZE, SIZE, others}}};
		uint32_t submit = script_stack(t.s, "main;submit");

		for (uint32_t i = 0; i < 100; i++)
			script_release(t.s, script_alloc(t.s, submit, SIZE));
		for (uint32_t i = 0; i < alike; i++)
			script_alloc(t.s, submit, SIZE);
		script_failed(t.s, submit, SIZE);
		others[0] = (alike - 1) * SIZE;
		stage(&t, detect_concurrency, true);
		if (alike < 4) {
			assert_int_equal(t.rc, DETECT_SILENT);
		} else {
			assert_int_equal(t.rc, 0);
			assert_int_equal(t.f.form, FORM_STREAMS);
			assert_int_equal(t.f.bytes, 11 * SIZE);
			assert_true(t.f.strength > 0.9);
		}
		strike(&t);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads),
	    cmocka_unit_test(test_asked_beside), cmocka_unit_test(test_asked_first),
	    cmocka_unit_test(test_queue), cmocka_unit_test(test_larger_than_before),
	    cmocka_unit_test(test_stacks), cmocka_unit_test(test_threads_end),
	    cmocka_unit_test(test_threads_come_at_once), cmocka_unit_test(test_workers),
	    cmocka_unit_test(test_one_thread), cmocka_unit_test(test_tasks),
	    cmocka_unit_test(test_many_small), cmocka_unit_test(test_leak),
	    cmocka_unit_test(test_workers_leak), cmocka_unit_test(test_one_huge),
	    cmocka_unit_test(test_arenas_elsewhere), cmocka_unit_test(test_arenas),
	    cmocka_unit_test(test_streams)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
