/* Speaks when others hold a good part, and less if the request is larger than any before. */
#include "detect/scene.h"

static void ask(struct staged *t, uint64_t request, uint64_t others)
{
	uint32_t work = script_stack(t->s, "main;work");

	script_alloc(t->s, script_stack(t->s, "main;load"), 1000000);
	for (int i = 0; i < 100; i++)
		script_release(t->s, script_alloc(t->s, work, 50000));
	script_failed(t->s, work, request);
	t->scene.others = (struct scene_others){.known = true, .bytes = others};
	stage(t, detect_external, true);
}

static void test_others(void **state)
{
	struct staged t = {.s = script_new()};

	ask(&t, 50000, 3000000);
	assert_int_equal(t.rc, 0);
	assert_true(t.f.strength == 1);
	assert_int_equal(t.f.other_bytes, 3000000);
	assert_int_equal(t.f.blame, CALLSITE_NONE);
	strike(&t);
	(void)state;
}

static void test_larger_than_before(void **state)
{
	struct staged t = {.s = script_new()};

	ask(&t, 500000, 3000000);
	assert_int_equal(t.rc, 0);
	assert_true(t.f.strength <= 0.5);
	strike(&t);
	(void)state;
}

static void test_silent(void **state)
{
	struct staged none = {.s = script_new()}, few = {.s = script_new()};

	ask(&none, 50000, 0);
	assert_int_equal(none.rc, DETECT_SILENT);
	strike(&none);
	ask(&few, 50000, 50000);
	assert_int_equal(few.rc, DETECT_SILENT);
	strike(&few);
	(void)state;
}

/* A steady server whose allocator has a smaller limit (kept -1: none). */
static void lower(struct staged *t, uint64_t request, uint64_t limit, int kept)
{
	uint32_t work = script_stack(t->s, "main;work"), keep = script_stack(t->s, "main;keep");

	script_alloc(t->s, script_stack(t->s, "main;load"), 1000000);
	for (int i = 0; i < 200; i++) {
		script_release(t->s, script_alloc(t->s, work, 500000 + i % 3 * 1000));
		if (kept > 0)
			script_alloc(t->s, keep, (uint64_t)kept);
	}
	script_failed(t->s, work, request);
	t->scene.space = "torch:0";
	t->scene.limit.bytes = limit;
	t->scene.limit.usage = 1000000;
	t->scene.limit.own = (struct scene_own_limit){.known = kept >= 0, .kept_back = 4000000};
	stage(t, detect_external, true);
}

static void test_limit(void **state)
{
	struct staged fitted = {.s = script_new()}, jump = {.s = script_new()},
		      room = {.s = script_new()}, never = {.s = script_new()};

	lower(&fitted, 500000, 1200000, 0);
	assert_int_equal(fitted.rc, 0);
	assert_true(fitted.f.strength == 1 && fitted.f.steady);
	assert_int_equal(fitted.f.other_bytes, 500000);
	strike(&fitted);
	lower(&jump, 5000000, 1200000, 0);
	assert_int_equal(jump.rc, DETECT_SILENT);
	strike(&jump);
	/* Another limit refused. */
	lower(&room, 500000, 1600000, -1);
	assert_int_equal(room.rc, DETECT_SILENT);
	strike(&room);
	lower(&never, 600000, 1550000, 0);
	assert_int_equal(never.rc, 0);
	assert_true(never.f.strength > 0.5 && never.f.strength < 0.8);
	strike(&never);
	(void)state;
}

/* In one piece the free ranges would have held it, as they did before. */
static void test_limit_with_holes(void **state)
{
	struct staged t = {.s = script_new()}, few = {.s = script_new()};

	t.scene.slack = (struct scene_slack){.known = true, .bytes = 600000};
	lower(&t, 500000, 1200000, -1);
	assert_int_equal(t.rc, DETECT_SILENT);
	strike(&t);
	few.scene.slack = (struct scene_slack){.known = true, .bytes = 100000};
	lower(&few, 500000, 1200000, -1);
	assert_int_equal(few.rc, 0);
	assert_true(few.f.strength == 1);
	strike(&few);
	(void)state;
}

/* PyTorch's own limit refused, with as much again free in holes: they are too small, not the limit.
 */
static void test_own_limit_with_holes(void **state)
{
	struct staged t = {.s = script_new()}, few = {.s = script_new()};

	t.scene.slack = (struct scene_slack){.known = true, .bytes = 600000, .below = 400000};
	lower(&t, 500000, 1200000, 0);
	assert_true(t.rc == DETECT_SILENT || t.f.strength < 0.1);
	strike(&t);
	few.scene.slack = (struct scene_slack){.known = true, .bytes = 100000, .below = 400000};
	lower(&few, 500000, 1200000, 0);
	assert_int_equal(few.rc, 0);
	assert_true(few.f.strength == 1);
	strike(&few);
	(void)state;
}

/* It grew, so no limit would be enough. */
static void test_limit_of_growth(void **state)
{
	struct staged t = {.s = script_new()};

	lower(&t, 600000, 1200000, 20000);
	assert_true(t.rc == DETECT_SILENT || t.f.strength < 0.4);
	strike(&t);
	(void)state;
}

/* The same all the time, at a limit of just that size; `kept`: apart from a part that rises.
 * Killed there, or refused a thread. */
static void plateau(struct staged *t, uint64_t kept, bool thread)
{
	uint32_t work = script_stack(t->s, "main;work"), keep = script_stack(t->s, "main;keep");

	script_alloc(t->s, script_stack(t->s, "main;load"), 1000000);
	for (int i = 0; i < 200; i++) {
		script_release(t->s, script_alloc(t->s, work, 500000));
		if (kept)
			script_alloc(t->s, keep, kept);
	}
	if (thread)
		script_failed_thread(t->s, work, 8000000);
	t->scene.limit.bytes = 2000000;
	t->scene.limit.usage = 1900000;
	stage(t, detect_external, true);
}

static void test_footprint(void **state)
{
	struct staged killed = {.s = script_new()}, thread = {.s = script_new()},
		      leak = {.s = script_new()}, holes = {.s = script_new()};

	plateau(&killed, 0, false);
	assert_int_equal(killed.rc, 0);
	assert_true(killed.f.strength == 1 && killed.f.steady);
	assert_int_equal(killed.f.other_bytes, 4096); /* what a kill asks for at least */
	strike(&killed);
	plateau(&thread, 0, true);
	assert_int_equal(thread.rc, 0);
	assert_true(thread.f.strength == 1);
	assert_int_equal(thread.f.other_bytes, 7900000);
	strike(&thread);
	plateau(&leak, 3000, false);
	assert_int_equal(leak.rc, DETECT_SILENT);
	strike(&leak);
	/* malloc has the missing bytes free. */
	holes.scene.slack = (struct scene_slack){.known = true, .bytes = 1200000};
	plateau(&holes, 0, false);
	assert_int_equal(holes.rc, DETECT_SILENT);
	strike(&holes);
	(void)state;
}

/* The same on a file system in memory, where only the work there counts. */
static void test_footprint_of_a_volume(void **state)
{
	for (int leaks = 0; leaks < 2; leaks++) {
		struct staged t = {.s = script_new()};
		struct scene_work work;

		plateau(&t, leaks ? 3000 : 0, false);
		work = (struct scene_work){t.m, t.p};
		t.scene.work = &work;
		assert_int_equal(detect_external(&t.scene, &t.f), leaks ? DETECT_SILENT : 0);
		assert_true(leaks || (t.f.strength == 1 && t.f.steady && t.f.other_bytes == 4096));
		strike(&t);
	}
	(void)state;
}

#define IMPORTS                                                                                    \
	"<module>@/app/main.py:3;_find_and_load@<frozen importlib._bootstrap>:9;"                  \
	"<module>@/usr/lib/python3/dist-packages/big/__init__.py:7"

/* Modules of 40 MB, of which the user's code made `own` bytes; then `at` is refused. */
static void start(struct staged *t, uint64_t own, const char *at)
{
	uint32_t import = script_stack(t->s, IMPORTS ";malloc@/lib/libc.so.6");

	script_alloc(t->s, script_stack(t->s, "<module>@/app/main.py:5"), own);
	for (int i = 0; i < 400; i++)
		script_alloc(t->s, import, 100000);
	if (at)
		script_failed(t->s, script_stack(t->s, at), 1000000);
	t->scene.limit.bytes = 60000000;
	t->scene.limit.usage = 59900000;
	stage(t, detect_external, true);
}

static void test_start(void **state)
{
	struct staged t = {.s = script_new()}, unseen = {.s = script_new()},
		      most = {.s = script_new()}, after = {.s = script_new()};

	start(&t, 1000, IMPORTS);
	assert_int_equal(t.rc, 0);
	assert_true(t.f.strength > 0.95 && t.f.steady);
	assert_int_equal(t.f.other_bytes, 900000);
	strike(&t);
	start(&unseen, 1000, NULL);
	assert_int_equal(unseen.rc, 0);
	assert_true(unseen.f.strength > 0.95);
	strike(&unseen);
	/* The user's code made half of it. */
	start(&most, 30000000, IMPORTS);
	assert_int_equal(most.rc, DETECT_SILENT);
	strike(&most);
	/* It had got beyond. */
	start(&after, 1000, "<module>@/app/main.py:9");
	assert_int_equal(after.rc, DETECT_SILENT);
	strike(&after);
	(void)state;
}

/* Serves the same all the time, until the limit on its address space is lowered. */
static void reload(struct staged *t, uint64_t request, uint64_t limit, uint64_t kept)
{
	uint32_t work = script_stack(t->s, "main;work"), keep = script_stack(t->s, "main;keep");

	script_alloc(t->s, script_stack(t->s, "main;load"), 1000000);
	for (int i = 0; i < 200; i++) {
		script_release(t->s, script_alloc(t->s, work, 5000000));
		if (kept)
			script_alloc(t->s, keep, kept);
	}
	script_failed(t->s, work, request);
	t->scene.limit.bytes = limit;
	t->scene.limit.usage = 1500000 + 200 * kept;
	t->scene.limit.is_virtual = true;
	stage(t, detect_external, true);
}

static void test_lowered(void **state)
{
	struct staged t = {.s = script_new()}, never = {.s = script_new()},
		      leak = {.s = script_new()};

	reload(&t, 5000000, 4000000, 0);
	assert_int_equal(t.rc, 0);
	assert_true(t.f.strength == 1 && t.f.steady);
	strike(&t);
	/* It never had that much. */
	reload(&never, 5000000, 6499999, 0);
	assert_int_equal(never.rc, 0);
	strike(&never);
	never = (struct staged){.s = script_new()};
	reload(&never, 6000000, 7000000, 0);
	assert_int_equal(never.rc, DETECT_SILENT);
	strike(&never);
	reload(&leak, 5000000, 9000000, 40000);
	assert_true(leak.rc == DETECT_SILENT || leak.f.strength < 0.4);
	strike(&leak);
	(void)state;
}

/* As much lived a moment before, but in the same rise: nothing needed it until then. */
static void test_just_reached(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t work = script_stack(t.s, "main;work"), pile = script_stack(t.s, "main;pile");

	for (int i = 0; i < 100; i++)
		script_release(t.s, script_alloc(t.s, work, 10000));
	for (int i = 0; i < 2500; i++) {
		uint64_t block = script_alloc(t.s, pile, 10000);

		if (i < 2000)
			script_release(t.s, block);
	}
	script_release(t.s, script_alloc(t.s, work, 20000));
	script_failed(t.s, work, 10000);
	t.scene.limit.bytes = 5005000;
	t.scene.limit.usage = 5000000;
	t.scene.limit.is_virtual = true;
	stage(&t, detect_external, true);
	assert_true(t.rc == DETECT_SILENT || (t.f.strength < 0.8 && t.f.trend_bytes > 2000000));
	strike(&t);
	(void)state;
}

/* Bursts of any size come and go, and one more is too large: as large as their spread lets expect,
 * or far larger; while the bursts grow, or what stays does. */
static void test_varying(void **state)
{
	static const struct {
		int last, growth, kept;
		bool external;
	} cases[] = {{12, 0, 0, true}, {60, 0, 0, false}, {40, 1, 0, false}, {10, 0, 60000, false}};

	for (size_t n = 0; n < sizeof(cases) / sizeof(*cases); n++) {
		struct staged t = {.s = script_new()};
		uint32_t state_of = script_stack(t.s, "main;load"),
			 page = script_stack(t.s, "main;page"),
			 keep = script_stack(t.s, "main;keep");
		uint64_t blocks[64];

		for (int i = 0; i < 5; i++)
			script_alloc(t.s, state_of, 100000);
		for (int i = 0; i < 40; i++) {
			int pages = 1 + i * 7 % 10 + cases[n].growth * i / 2;

			if (cases[n].kept)
				script_alloc(t.s, keep, (uint64_t)cases[n].kept);
			for (int k = 0; k < pages; k++)
				blocks[k] = script_alloc(t.s, page, 50000);
			script_wait(t.s, 200000);
			for (int k = 0; k < pages; k++)
				script_release(t.s, blocks[k]);
			script_wait(t.s, 200000);
		}
		for (int k = 0; k < cases[n].last; k++)
			script_alloc(t.s, page, 50000);
		script_failed(t.s, page, 50000);
		t.scene.limit.bytes = t.scene.limit.usage = 8000000;
		stage(&t, detect_external, true);
		if (cases[n].external) {
			assert_int_equal(t.rc, 0);
			assert_int_equal(t.f.form, FORM_VARYING);
			assert_true(t.f.strength > 0.4);
		} else {
			assert_true(t.rc == DETECT_SILENT || t.f.strength < 0.3);
		}
		strike(&t);
	}
	(void)state;
}

/* Requests differ, and get larger and larger: the next is within what their spread lets expect, but
 * was to come. */
static void test_growing_teeth(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t page = script_stack(t.s, "main;page");
	uint64_t blocks[128];

	script_alloc(t.s, script_stack(t.s, "main;load"), 100000);
	for (int i = 0; i < 60; i++) {
		int pages = 1 + i * (2 + i * 7 % 3) / 3;

		for (int k = 0; k < pages; k++)
			blocks[k] = script_alloc(t.s, page, 50000);
		script_wait(t.s, 4000000);
		for (int k = 0; k < pages; k++)
			script_release(t.s, blocks[k]);
		script_wait(t.s, 4000000);
	}
	for (int k = 0; k < 85; k++)
		script_alloc(t.s, page, 50000);
	script_failed(t.s, page, 50000);
	t.scene.limit.bytes = t.scene.limit.usage = 8000000;
	stage(&t, detect_external, true);
	assert_true(t.rc == DETECT_SILENT || t.f.strength < 0.1);
	strike(&t);
	(void)state;
}

/* Address space of threads' stacks is no growth; beside blocks that stay, or the holes that others
 * left, it counts less. */
static void test_stacks(void **state)
{
	for (int grows = 0; grows < 3; grows++) {
		struct staged t = {.s = script_new()};

		for (int i = 0; grows == 1 && i < 40; i++)
			script_alloc(t.s, script_stack(t.s, "main;keep"), 1000000);
		script_failed(t.s, script_stack(t.s, "main;begin"), 8000000);
		t.scene.limit.bytes = 128000000;
		t.scene.limit.usage = 122000000;
		t.scene.limit.is_virtual = true;
		t.scene.limit.stacks = grows ? 80000000 : 120000000;
		t.scene.slack.known = grows == 2;
		t.scene.slack.bytes = 40000000;
		stage(&t, detect_external, true);
		if (grows) {
			assert_true(t.rc == DETECT_SILENT || t.f.strength <= 0.3);
		} else {
			assert_int_equal(t.rc, 0);
			assert_true(t.f.strength == 1);
			assert_int_equal(t.f.other_bytes, 120000000);
			assert_int_equal(t.f.form, FORM_STACKS);
		}
		strike(&t);
	}
	(void)state;
}

/* Stacks of threads that hold much at the same time are of these requests. */
static void test_stacks_beside_work(void **state)
{
	double strength[2];

	for (uint32_t threads = 1; threads < 3; threads++) {
		struct staged t = {.s = script_new()};

		for (uint32_t i = 0; i < 100; i++)
			script_release(
			    t.s, script_alloc(t.s, script_stack(t.s, "main;answer"), 6000000));
		for (uint32_t i = 0; i < 3; i++) {
			script_thread(t.s, 2 + (threads == 1 ? 0 : i), 0);
			script_alloc(t.s, script_stack(t.s, "main;answer"), 6000000);
		}
		script_failed(t.s, script_stack(t.s, "main;answer"), 8000000);
		t.scene.limit.bytes = 128000000;
		t.scene.limit.usage = 122000000;
		t.scene.limit.is_virtual = true;
		t.scene.limit.stacks = 80000000;
		stage(&t, detect_external, true);
		strength[threads - 1] = t.rc ? 0 : t.f.strength;
		strike(&t);
	}
	assert_true(strength[1] < strength[0] - 0.2);
	(void)state;
}

/* Files that the program itself did not remove are nobody else's; a neighbour's beside them are. */
static void test_files_left(void **state)
{
	static const uint64_t left[] = {3000000, 1000000};

	for (int n = 0; n < 2; n++) {
		struct staged t = {.s = script_new()};

		ask(&t, 50000, 3000000);
		t.scene.others.left = left[n];
		assert_int_equal(detect_external(&t.scene, &t.f), n ? 0 : DETECT_SILENT);
		strike(&t);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_others),
	    cmocka_unit_test(test_larger_than_before), cmocka_unit_test(test_silent),
	    cmocka_unit_test(test_stacks), cmocka_unit_test(test_stacks_beside_work),
	    cmocka_unit_test(test_limit), cmocka_unit_test(test_limit_with_holes),
	    cmocka_unit_test(test_own_limit_with_holes), cmocka_unit_test(test_limit_of_growth),
	    cmocka_unit_test(test_footprint), cmocka_unit_test(test_footprint_of_a_volume),
	    cmocka_unit_test(test_start), cmocka_unit_test(test_lowered),
	    cmocka_unit_test(test_just_reached), cmocka_unit_test(test_files_left),
	    cmocka_unit_test(test_varying), cmocka_unit_test(test_growing_teeth)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
