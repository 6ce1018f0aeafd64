/* Speaks of blocks that every generation leaves behind; weakly if they feed a growing buffer. */
#include "detect/scene.h"

static void test_leak(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t leak = script_stack(t.s, "main;leak"), table = script_stack(t.s, "main;table"),
		 work = script_stack(t.s, "main;work");
	uint64_t room = 16, array = script_alloc(t.s, table, room * 8);

	for (uint64_t i = 0; i < 20000; i++) {
		if (i == room) {
			room *= 2;
			array = script_realloc(t.s, array, table, room * 8);
		}
		script_alloc(t.s, leak, 100);
		script_release(t.s, script_alloc(t.s, work, 100));
	}
	script_failed(t.s, table, room * 16);
	stage(&t, detect_leak, true);
	assert_int_equal(t.rc, 0);
	assert_string_equal(blamed(&t), "leak");
	assert_true(t.f.strength >= 0.9);
	assert_true(t.f.bytes >= 2000000);
	assert_true(t.f.request_bytes > 0); /* the table's next size goes with it */
	strike(&t);
	(void)state;
}

/* A few blocks that are released late do not say how long a block is needed. */
static void test_few_released(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t leak = script_stack(t.s, "main;leak"), work = script_stack(t.s, "main;work");
	uint64_t first[8];

	for (int i = 0; i < 1000; i++) {
		uint64_t block = script_alloc(t.s, leak, 10000);

		if (i < 8)
			first[i] = block;
		if (i >= 900 && i < 908)
			script_release(t.s, first[i - 900]);
		script_release(t.s, script_alloc(t.s, work, 10000));
	}
	script_failed(t.s, leak, 10000);
	stage(&t, detect_leak, true);
	assert_int_equal(t.rc, 0);
	assert_int_equal(t.f.claim_count, 1);
	assert_int_equal(t.f.claims[0].rule, RULE_EXPIRE);
	assert_true(t.f.claims[0].value < 10000); /* ns: a thousandth of the run is 3000 */
	strike(&t);
	(void)state;
}

/* What nothing was released beside is put in place by a program that starts, as an index is: a
 * hundred blocks, or thousands where a name says that they are loaded. A request releases
 * something; many hundred alike that no name explains are a leak in its simplest form. */
static void test_starting(void **state)
{
	static const struct {
		const char *line;
		int blocks;
		bool requests, leak;
	} ways[] = {{"main;keep", 5000, true, true}, {"main;keep", 5000, false, true},
	    {"main;keep", 100, false, false}, {"main;load_index", 5000, false, false}};

	for (size_t n = 0; n < sizeof(ways) / sizeof(*ways); n++) {
		struct staged t = {.s = script_new()};
		uint32_t keep = script_stack(t.s, ways[n].line),
			 work = script_stack(t.s, "main;work");
		struct finding model;

		for (int i = 0; i < ways[n].blocks; i++) {
			script_alloc(t.s, keep, 1000 + (uint64_t)i * 7 % 13 * 40);
			if (ways[n].requests)
				script_release(t.s, script_alloc(t.s, work, 300));
		}
		script_failed(t.s, keep, 1000);
		stage(&t, detect_leak, true);
		assert_int_equal(t.rc, 0);
		assert_string_equal(blamed(&t), ways[n].line + 5);
		if (ways[n].leak) {
			assert_true(t.f.strength > 0.9);
			assert_int_equal(detect_oversized_model(&t.scene, &model), DETECT_SILENT);
		} else {
			assert_true(t.f.strength <= 0.31);
			assert_int_equal(detect_oversized_model(&t.scene, &model), 0);
			assert_true(model.blame == t.f.blame);
			assert_true(model.strength > 0.6 && model.strength < 0.85);
		}
		strike(&t);
	}
	(void)state;
}

static void test_history_is_weak(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t keep = script_stack(t.s, "main;remember"), build = script_stack(t.s, "main;build");

	for (uint64_t turn = 1; turn < 100; turn++) {
		script_alloc(t.s, keep, 10000);
		script_release(t.s, script_alloc(t.s, build, turn * 10000));
	}
	stage(&t, detect_leak, true);
	assert_true(t.rc == DETECT_SILENT || t.f.strength <= 0.4);
	strike(&t);
	(void)state;
}

static void test_silent(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t load = script_stack(t.s, "main;load"), work = script_stack(t.s, "main;work");
	uint64_t ring[50] = {0};

	for (int i = 0; i < 1000; i++)
		script_alloc(t.s, load, 1000);
	for (int i = 0; i < 10000; i++) {
		if (ring[i % 50])
			script_release(t.s, ring[i % 50]);
		ring[i % 50] = script_alloc(t.s, work, 10000);
	}
	stage(&t, detect_leak, true);
	assert_int_equal(t.rc, DETECT_SILENT);
	strike(&t);
	(void)state;
}

/* While the call that makes them is open, there is no finished work that left them. */
static void test_one_call(void **state)
{
	double before = 2;

	for (enum open_call as = OPEN_CALL_NO; as <= OPEN_CALL_YES; as++) {
		struct staged t = {.s = script_new(), .open_call = as};

		for (int i = 0; i < 1000; i++) {
			script_alloc(t.s, script_stack(t.s, "main;answer;fetch"), 20000);
			script_release(
			    t.s, script_alloc(t.s, script_stack(t.s, "main;answer;read"), 20000));
		}
		script_failed(t.s, script_stack(t.s, "main;answer;fetch"), 20000);
		stage(&t, detect_leak, true);
		assert_int_equal(t.rc, 0);
		assert_true(t.f.strength < before - 0.1);
		before = t.f.strength;
		strike(&t);
	}
	assert_true(before < 0.4);
	(void)state;
}

/* Few large blocks with next to no traffic beside them: weights and pools are made so. Not if
 * many small blocks come and go between any two, or if sizes only rise. */
static void test_set_up(void **state)
{
	double set_up = 0;

	for (int way = 0; way < 3; way++) {
		struct staged t = {.s = script_new()};
		uint32_t keep = script_stack(t.s, "main;keep"),
			 work = script_stack(t.s, "main;work");

		for (int i = 0; i < 60; i++) {
			script_alloc(t.s, keep, way == 2 ? 1000000 + i / 20 * 90000 : 1000000);
			for (int k = 0; way == 1 && k < 20; k++)
				script_release(t.s, script_alloc(t.s, work, 200));
		}
		script_failed(t.s, keep, 1000000);
		stage(&t, detect_leak, true);
		assert_int_equal(t.rc, 0);
		if (!way)
			set_up = t.f.strength;
		else
			assert_true(t.f.strength >= 1.9 * set_up);
		strike(&t);
	}
	/* Half of what is left for a program that may still be starting. */
	assert_true(set_up > 0.1 && set_up <= 0.16);
	(void)state;
}

/* On a device, equal blocks before any work are half as surely a leak if a name says what for. */
/* Blocks of one size come at the start, and again after a hundred requests that left none; or a few
 * with each request. */
static void test_made_again(void **state)
{
	for (int each = 0; each < 2; each++) {
		struct staged t = {.s = script_new()};
		uint32_t make = script_stack(t.s, "main;make"),
			 work = script_stack(t.s, "main;work");

		for (int i = 0; !each && i < 200; i++)
			script_alloc(t.s, make, 400000);
		for (int i = 0; i < 100; i++) {
			script_wait(t.s, 1000000);
			for (int k = 0; k < 10; k++)
				script_release(t.s, script_alloc(t.s, work, 100000));
			for (int k = 0; each && k < 4; k++)
				script_alloc(t.s, make, 400000);
		}
		for (int i = 0; !each && i < 150; i++)
			script_alloc(t.s, make, 400000);
		script_failed(t.s, make, 400000);
		stage(&t, detect_leak, true);
		assert_int_equal(t.rc, 0);
		assert_true(each ? t.f.strength > 0.9 : t.f.strength < 0.5);
		strike(&t);
	}
	(void)state;
}

static void test_set_up_by_name(void **state)
{
	double strength[2];

	for (int named = 0; named < 2; named++) {
		struct staged t = {.s = script_new(), .scene = {.space = "torch:0"}};
		uint32_t keep = script_stack(t.s, named ? "main;load_layers" : "main;keep");

		for (int i = 0; i < 60; i++)
			script_alloc(t.s, keep, 1000000);
		script_failed(t.s, keep, 1000000);
		stage(&t, detect_leak, true);
		strength[named] = t.rc ? 0 : t.f.strength;
		strike(&t);
	}
	/* Nothing was given back: both may still be starting. */
	assert_true(strength[0] > 0.25 && strength[0] < 0.35);
	assert_true(strength[1] < 0.7 * strength[0]);
	(void)state;
}

/* Nor if hardly two have one size: data come in so, and a model's layers are alike. */
static void test_scattered(void **state)
{
	double strength[2];

	for (int scattered = 0; scattered < 2; scattered++) {
		struct staged t = {.s = script_new()};
		uint32_t keep = script_stack(t.s, "main;keep");
		uint64_t seed = 5;

		for (int i = 0; i < 60; i++)
			script_alloc(t.s, keep,
			    1000000 + (scattered ? dice(&seed, 200000) : dice(&seed, 3) * 90000));
		script_failed(t.s, keep, 1000000);
		stage(&t, detect_leak, true);
		assert_int_equal(t.rc, 0);
		strength[scattered] = t.f.strength;
		strike(&t);
	}
	/* Nothing was given back: both may still be starting. */
	assert_true(strength[0] <= 0.16);
	assert_true(strength[1] >= 0.28);
	(void)state;
}

/* Only used bytes of the arenas' growth can be a leak's. */
static void test_arenas(void **state)
{
	double full = 0;

	for (int empty = 0; empty < 2; empty++) {
		struct staged t = {.s = script_new()};
		uint32_t at = script_stack(t.s, "main@/app/main.py:9;keep@/app/main.py:5");

		for (int i = 0; i < 100; i++)
			script_map(t.s, at, 1 << 20, 0, 0);
		script_failed(t.s, at, 1 << 20);
		t.scene.slack = (struct scene_slack){
		    .known = true, .arenas_steady = 10 << 20, .arenas = (empty ? 80 : 0) << 20};
		stage(&t, detect_leak, true);
		for (uint32_t i = 0; i < t.p->count; i++)
			t.p->list[i].arena_share.any = true;
		assert_int_equal(detect_leak(&t.scene, &t.f), 0);
		if (empty)
			assert_true(t.f.strength < full / 4);
		full = t.f.strength;
		strike(&t);
	}
	(void)state;
}

/* Each of four threads keeps a block of each request that it serves: they repeat, so none of the
 * blocks is a request in flight, also where their table is enlarged at the same line. A few blocks
 * of each are, and many made in one go. */
static void test_workers_repeat(void **state)
{
	enum { FEW, REPEATS, WITH_TABLE, IN_ONE_GO, WAYS };

	for (int way = FEW; way < WAYS; way++) {
		struct staged t = {.s = script_new()};
		uint32_t keep = script_stack(t.s, "worker;keep"),
			 work = script_stack(t.s, "worker;parse");
		uint64_t room = 1, table = 0;
		struct finding f;

		for (uint32_t i = 0; i < (way == FEW ? 12 : 400); i++) {
			script_thread(t.s, 2 + i % 4, 0);
			if (way == WITH_TABLE && i == room) {
				room *= 2;
				table = table ? script_realloc(t.s, table, keep, room * 4000)
					      : script_alloc(t.s, keep, room * 4000);
			}
			if (way != IN_ONE_GO || i >= 200)
				script_alloc(t.s, keep, 50000);
			for (int k = 0; k < 10 && (way != IN_ONE_GO || i < 200); k++)
				script_release(t.s, script_alloc(t.s, work, 3000));
		}
		script_failed(t.s, keep, 50000);
		stage(&t, detect_leak, true);
		assert_int_equal(t.rc, 0);
		assert_string_equal(blamed(&t), "keep");
		assert_int_equal(detect_concurrency(&t.scene, &f), 0);
		if (way == REPEATS || way == WITH_TABLE)
			assert_true(t.f.strength > 0.9 && f.strength < 0.4);
		else
			assert_true(t.f.strength < 0.6 && f.strength > 0.6);
		strike(&t);
	}
	(void)state;
}

/* A sample misses most of the small blocks that come and go beside them: one thread that is seen
 * to release some is enough. */
static void test_workers_sampled(void **state)
{
	for (int sampled = 0; sampled < 2; sampled++) {
		struct staged t = {
		    .s = script_new(), .scene.sample_every = sampled ? 512 << 10 : 0};
		uint32_t keep = script_stack(t.s, "worker;keep");

		for (uint32_t i = 0; i < 400; i++) {
			script_thread(t.s, 2 + i % 4, 0);
			script_alloc(t.s, keep, 50000);
			if (i % 4 == 1 && i > 300)
				script_release(t.s,
				    script_alloc(t.s, script_stack(t.s, "worker;parse"), 3000));
		}
		script_failed(t.s, keep, 50000);
		stage(&t, detect_leak, true);
		assert_int_equal(t.rc, 0);
		assert_true(sampled ? t.f.strength > 0.7 : t.f.strength < 0.4);
		strike(&t);
	}
	(void)state;
}

/* Closed and never removed: of a full file system the line that made most of them, although nothing
 * of it lives; in a cgroup nobody, since write() is not recorded. Not if the blocks are more. */
static void test_files_left(void **state)
{
	for (int more = 0; more < 2; more++) {
		struct staged t = {.s = script_new()};
		uint32_t publish = script_stack(t.s, "main;publish");

		script_alloc(t.s, script_stack(t.s, "main;load"), more ? 90000000 : 1000000);
		for (int i = 0; i < 60; i++)
			script_unmap(t.s, script_map(t.s, publish, 1 << 20, 0, 0), 1 << 20);
		script_failed(t.s, publish, 1 << 20);
		t.scene.others =
		    (struct scene_others){.known = true, .bytes = 60 << 20, .left = 60 << 20};
		stage(&t, detect_leak, true);
		if (more) {
			assert_int_equal(t.rc, DETECT_SILENT);
		} else {
			struct scene_work work = {t.m, t.p};

			assert_int_equal(t.rc, 0);
			assert_int_equal(t.f.form, FORM_FILES);
			assert_true(t.f.blame == CALLSITE_NONE);
			t.scene.work = &work;
			assert_int_equal(detect_leak(&t.scene, &t.f), 0);
			assert_string_equal(blamed(&t), "publish");
			assert_true(t.f.strength > 0.9);
			assert_int_equal(t.f.other_bytes, 60 << 20);
			assert_int_equal(finding_fact(&t.f, FACT_FILES_EACH), 1 << 20);
		}
		strike(&t);
	}
	(void)state;
}

/* Blocks that came before the first request, and none with the many since, are no remains of
 * them. */
static void test_stopped(void **state)
{
	double strength[2];

	for (int stopped = 0; stopped < 2; stopped++) {
		struct staged t = {.s = script_new()};
		uint32_t keep = script_stack(t.s, "main;keep"),
			 work = script_stack(t.s, "main;serve");

		for (int i = 0; i < 200; i++) {
			script_alloc(t.s, keep, 300000);
			if (!stopped)
				script_release(t.s, script_alloc(t.s, work, 20000));
		}
		for (int i = 0; stopped && i < 60; i++)
			script_release(t.s, script_alloc(t.s, work, 20000));
		stage(&t, detect_leak, true);
		assert_int_equal(scene_has_stopped(&t.scene, &t.p->list[0]), stopped);
		strength[stopped] = t.rc ? 0 : t.f.strength;
		strike(&t);
	}
	assert_true(strength[1] < 0.5 * strength[0]);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_one_call),
	    cmocka_unit_test(test_leak),
	    cmocka_unit_test(test_few_released),
	    cmocka_unit_test(test_starting),
	    cmocka_unit_test(test_history_is_weak),
	    cmocka_unit_test(test_silent),
	    cmocka_unit_test(test_set_up),
	    cmocka_unit_test(test_made_again),
	    cmocka_unit_test(test_set_up_by_name),
	    cmocka_unit_test(test_scattered),
	    cmocka_unit_test(test_arenas),
	    cmocka_unit_test(test_workers_repeat),
	    cmocka_unit_test(test_workers_sampled),
	    cmocka_unit_test(test_files_left),
	    cmocka_unit_test(test_stopped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
