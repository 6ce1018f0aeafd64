/* Speaks of one huge block; not of an ordinary request that came too late, nor of a standing
 * footprint. */
#include "detect/scene.h"

static void test_request(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t load = script_stack(t.s, "main;load");

	for (int i = 0; i < 100; i++)
		script_release(t.s, script_alloc(t.s, load, 100000 + (uint64_t)i));
	script_alloc(t.s, script_stack(t.s, "main;init"), 200 * MiB);
	script_failed(t.s, load, 3 * GiB);
	stage(&t, detect_oversized_intermediate, true);
	assert_int_equal(t.rc, 0);
	assert_string_equal(blamed(&t), "load");
	assert_int_equal(t.f.request_bytes, 3 * GiB);
	assert_true(t.f.strength >= 0.9);
	strike(&t);
	(void)state;
}

/* What a start puts in place, by its name, is less surely an intermediate. */
static void test_start(void **state)
{
	static const char *const at[] = {"main;score", "main;reserve_slots", "main;load_weights"};
	double strength[3];

	for (int n = 0; n < 3; n++) {
		struct staged t = {.s = script_new()};

		for (int i = 0; i < 2000; i++)
			script_release(t.s, script_alloc(t.s, script_stack(t.s, "main;read"), 500));
		script_failed(t.s, script_stack(t.s, at[n]), 300 * MiB);
		stage(&t, detect_oversized_intermediate, true);
		assert_int_equal(t.rc, 0);
		strength[n] = t.f.strength;
		strike(&t);
	}
	assert_true(strength[0] > 0.9);
	assert_true(strength[1] < 0.75 * strength[0] && strength[2] < 0.75 * strength[0]);
	(void)state;
}

/* The first that is made on a device, before anything was released there, is a model or a pool
 * rather than a request's. */
static void test_first_on_a_device(void **state)
{
	for (int served = 0; served < 2; served++) {
		struct staged t = {.s = script_new(), .scene = {.space = "torch:0"}};
		uint32_t work = script_stack(t.s, "main;work");

		script_alloc(t.s, script_stack(t.s, "main;load"), 100 * MiB);
		for (int i = 0; i < 40; i++) {
			uint64_t block = script_alloc(t.s, work, 100000);

			if (served)
				script_release(t.s, block);
		}
		script_failed(t.s, work, 3 * GiB);
		stage(&t, detect_oversized_intermediate, true);
		assert_int_equal(t.rc, 0);
		assert_int_equal(t.f.request_bytes, 3 * GiB);
		assert_true(served ? t.f.strength > 0.9 : t.f.strength <= 0.4);
		strike(&t);
	}
	(void)state;
}

static void test_young_and_old_blocks(void **state)
{
	for (int old = 0; old < 2; old++) {
		struct staged t = {.s = script_new()};
		uint32_t matrix = script_stack(t.s, "main;matrix"),
			 work = script_stack(t.s, "main;work");

		if (old)
			script_alloc(t.s, matrix, 500 * MiB);
		for (int i = 0; i < 3000; i++)
			script_release(t.s, script_alloc(t.s, work, 100000));
		if (!old)
			script_alloc(t.s, matrix, 500 * MiB);
		script_alloc(t.s, work, 1000);
		script_failed(t.s, work, 100000);
		stage(&t, detect_oversized_intermediate, true);
		if (old)
			assert_true(t.rc == DETECT_SILENT || t.f.strength < 0.2);
		else
			assert_true(t.rc == 0 && t.f.strength >= 0.9);
		strike(&t);
	}
	(void)state;
}

/* A device that waited long, then served beside a block that came just before: measured by its
 * work, the block is old. */
static void test_served_beside(void **state)
{
	for (int device = 0; device < 2; device++) {
		struct staged t = {.s = script_new()};
		uint32_t work = script_stack(t.s, "main;work");

		script_alloc(t.s, script_stack(t.s, "main;load"), 1 * MiB);
		script_wait(t.s, 1000000000);
		script_alloc(t.s, script_stack(t.s, "main;table"), 500 * MiB);
		for (int i = 0; i < 3000; i++)
			script_release(t.s, script_alloc(t.s, work, 100000));
		script_failed(t.s, work, 100000);
		t.scene.space = device ? "torch:0" : NULL;
		stage(&t, detect_oversized_intermediate, true);
		if (device)
			assert_true(t.rc == DETECT_SILENT || t.f.strength < 0.2);
		else
			assert_true(t.rc == 0 && t.f.strength >= 0.8);
		strike(&t);
	}
	(void)state;
}

/* Each call makes a pile and releases it; the last one is still there: the next of a kind, or
 * one of another size, present for long or just made. */
static void test_next_pile(void **state)
{
	for (int unlike = 0; unlike < 3; unlike++) {
		struct staged t = {.s = script_new()};
		uint32_t split = script_stack(t.s, "main;split");
		static uint64_t words[8000];

		for (int call = 0; call < 13; call++) {
			static const int last[] = {1240, 8000, 2400};
			int count = call < 12 ? 1000 + call * 20 : last[unlike];

			for (int i = 0; i < count; i++)
				words[i] = script_alloc(t.s, split, 1000);
			if (unlike == 2 && call < 12)
				script_wait(t.s, 5000000);
			for (int i = 0; call < 12 && i < count; i++)
				script_release(t.s, words[i]);
		}
		if (unlike < 2)
			script_wait(t.s, 1000000000);
		script_failed(t.s, script_stack(t.s, "main;count"), 5000);
		stage(&t, detect_oversized_intermediate, true);
		if (unlike)
			assert_true(t.rc == 0 && t.f.strength >= 0.8);
		else
			assert_true(t.rc == DETECT_SILENT || t.f.strength < 0.3);
		strike(&t);
	}
	(void)state;
}

/* From some time on two of five are not released; the others are, at the same pace, so it is no
 * single request's pile. A pile that comes at once is, even if it releases blocks on the way. */
static void test_paced(void **state)
{
	for (int at_once = 0; at_once < 2; at_once++) {
		struct staged t = {.s = script_new()};
		uint32_t open = script_stack(t.s, "main;open");

		for (int i = 0; i < 3000; i++) {
			bool late = i >= 2000;
			uint64_t job = script_alloc(t.s, open, 1000 + (uint64_t)(i % 7) * 100);

			if (!late || !at_once)
				script_wait(t.s, 100000);
			if (!late || i % 5 > 1)
				script_release(t.s, job);
		}
		script_failed(t.s, open, 5000);
		stage(&t, detect_oversized_intermediate, true);
		if (at_once)
			assert_true(t.rc == 0 && t.f.strength >= 0.8);
		else
			assert_true(t.rc == DETECT_SILENT || t.f.strength < 0.5);
		strike(&t);
	}
	(void)state;
}

/* What rises after the start is the work itself; what rises after work as long is one request's. */
static void test_late_start(void **state)
{
	for (int worked = 0; worked < 2; worked++) {
		struct staged t = {.s = script_new()};
		uint32_t index = script_stack(t.s, "main;serve;index"),
			 work = script_stack(
			     t.s, worked ? "main;serve;work" : "<module>@/app/main.py:3");

		script_alloc(t.s, script_stack(t.s, "main;set_up"), 100000);
		for (int i = 0; i < 1000; i++) {
			script_wait(t.s, 1000000);
			script_release(t.s, script_alloc(t.s, work, 100000));
		}
		for (int i = 0; i < 20000; i++) {
			script_wait(t.s, 1000);
			script_alloc(t.s, index, 700);
		}
		script_failed(t.s, index, 700);
		stage(&t, detect_oversized_intermediate, true);
		if (worked)
			assert_true(t.rc == 0 && t.f.strength >= 0.8);
		else
			assert_true(t.rc == DETECT_SILENT || t.f.strength < 0.5);
		strike(&t);
	}
	(void)state;
}

/* A payload is fetched, and others rewrite it in other forms; none of them made it. Earlier
 * blocks of every size are no part. On a device it is the same. */
static void copies(const char *space)
{
	struct staged t = {.s = script_new(), .scene.space = space};
	uint32_t fetch = script_stack(t.s, "main;fetch"), wire = script_stack(t.s, "main;wire"),
		 work = script_stack(t.s, "main;work");

	for (int i = 0; i < 3000; i++) {
		script_release(t.s, script_alloc(t.s, work, (uint64_t)i * 40000));
		script_release(t.s, script_alloc(t.s, fetch, 10000));
		script_release(t.s, script_alloc(t.s, wire, 10010));
	}
	script_alloc(t.s, fetch, 100 * MiB);
	script_alloc(t.s, wire, 100 * MiB + 100);
	script_failed(t.s, wire, 101 * MiB);
	stage(&t, detect_oversized_intermediate, true);
	assert_int_equal(t.rc, 0);
	assert_string_equal(blamed(&t), "fetch");
	assert_true(t.f.copied);
	strike(&t);
}

static void test_copies(void **state)
{
	copies(NULL);
	copies("torch:0");
	(void)state;
}

/* A table stands since the start, and a late request makes a copy of it: the copy is the matter.
 * Imports before the table are no work. */
static void test_copy_of_standing(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t load = script_stack(t.s, "main;load"), copy = script_stack(t.s, "main;copy"),
		 work = script_stack(t.s, "main;work");

	script_alloc(t.s, load, 100 * MiB);
	for (int i = 0; i < 300; i++)
		script_release(t.s, script_alloc(t.s, work, 20000));
	script_failed(t.s, copy, 100 * MiB);
	stage(&t, detect_oversized_intermediate, true);
	assert_int_equal(t.rc, 0);
	assert_string_equal(blamed(&t), "copy");
	assert_false(t.f.copied);
	strike(&t);
	(void)state;
}

/* The last form of a body is refused, or an earlier one: the largest is the one to change. */
static void test_forms(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t text = script_stack(t.s, "main;text"), bytes = script_stack(t.s, "main;bytes");

	for (int i = 0; i < 300; i++) {
		script_release(t.s, script_alloc(t.s, text, 20000));
		script_release(t.s, script_alloc(t.s, bytes, 10000));
	}
	script_alloc(t.s, text, 200 * MiB);
	script_failed(t.s, bytes, 100 * MiB);
	stage(&t, detect_oversized_intermediate, true);
	assert_int_equal(t.rc, 0);
	assert_string_equal(blamed(&t), "text");
	assert_true(t.f.copied);
	strike(&t);
	(void)state;
}

/* Two threads make the same large block. Each alone is larger than the limit, or both only. */
static void test_two_at_once(void **state)
{
	double strength[2];

	for (int alone = 0; alone < 2; alone++) {
		struct staged t = {.s = script_new()};
		uint32_t decode = script_stack(t.s, "main;decode");

		for (int i = 0; i < 300; i++)
			script_release(t.s, script_alloc(t.s, decode, 20000));
		for (uint32_t i = 0; i < 2; i++) {
			script_thread(t.s, 2 + i, 0);
			script_alloc(t.s, decode, 100 * MiB);
		}
		t.scene.limit.bytes = alone ? 90 * MiB : 180 * MiB;
		stage(&t, detect_oversized_intermediate, true);
		assert_int_equal(t.rc, 0);
		strength[alone] = t.f.strength;
		strike(&t);
	}
	assert_true(strength[0] < 0.6 && strength[1] > 0.8);
	(void)state;
}

/* A block that takes long to process stays young: nothing came since. */
static void test_slow(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t work = script_stack(t.s, "main;work");

	for (int i = 0; i < 3000; i++)
		script_release(t.s, script_alloc(t.s, work, 100000));
	script_alloc(t.s, script_stack(t.s, "main;matrix"), 500 * MiB);
	script_wait(t.s, 1000000000);
	script_failed(t.s, script_stack(t.s, "main;compare"), 1 * MiB);
	stage(&t, detect_oversized_intermediate, true);
	assert_int_equal(t.rc, 0);
	assert_string_equal(blamed(&t), "matrix");
	assert_true(t.f.strength >= 0.9);
	strike(&t);
	(void)state;
}

/* A pool that the very first request meets; while the call that makes such blocks is open, they
 * may be its own. */
static void test_set_up(void **state)
{
	for (int open = 0; open < 2; open++) {
		struct staged t = {.s = script_new()};
		uint32_t work = script_stack(t.s, "main;work"),
			 pool = script_stack(t.s, "main;build;pool");

		for (int i = 0; i < 3000; i++)
			script_release(t.s, script_alloc(t.s, work, 100000));
		for (int i = 0; i < 6; i++)
			script_alloc(t.s, pool, 500 * MiB);
		script_failed(t.s, work, 100000);
		t.scene.space = "torch:0";
		t.open_call = open ? OPEN_CALL_YES : OPEN_CALL_NO;
		stage(&t, detect_oversized_intermediate, true);
		assert_int_equal(t.rc, 0);
		assert_true(open ? t.f.strength >= 0.9 : t.f.strength <= 0.5);
		strike(&t);
	}
	(void)state;
}

/* One line made and released a few blocks for each of a thousand requests; the last makes a
 * pile. A cache that replaces its oldest looks alike, but its blocks live no longer than earlier
 * ones. */
static void test_pile(void **state)
{
	for (int cache = 0; cache < 2; cache++) {
		struct staged t = {.s = script_new()};
		uint32_t load = script_stack(t.s, "main;load");
		uint64_t few[2000] = {0};

		for (int i = 0; i < 1000 && !cache; i++) {
			for (int k = 0; k < 20; k++)
				few[k] = script_alloc(t.s, load, 10000);
			for (int k = 0; k < 20; k++)
				script_release(t.s, few[k]);
		}
		for (int i = 0; i < 20000; i++) {
			if (cache && few[i % 2000])
				script_release(t.s, few[i % 2000]);
			few[i % 2000] = script_alloc(t.s, load, 10000);
		}
		script_failed(t.s, load, 10000);
		stage(&t, detect_oversized_intermediate, true);
		if (cache)
			assert_int_equal(t.rc, DETECT_SILENT);
		else
			assert_true(t.rc == 0 && t.f.strength >= 0.8 && t.f.bytes >= 150000000);
		strike(&t);
	}
	(void)state;
}

static void test_ordinary_request(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t work = script_stack(t.s, "main;work"), leak = script_stack(t.s, "main;leak");

	for (int i = 0; i < 300; i++) {
		script_alloc(t.s, leak, MiB);
		script_release(t.s, script_alloc(t.s, work, 100 * MiB));
	}
	script_failed(t.s, work, 100 * MiB);
	stage(&t, detect_oversized_intermediate, true);
	assert_true(t.rc == DETECT_SILENT || t.f.strength < 0.2);
	strike(&t);
	(void)state;
}

/* A request that is in its line's series, but would not fit if nothing else lived; unless as much
 * was granted before. */
static void test_more_than_the_limit(void **state)
{
	for (int before = 0; before < 2; before++) {
		struct staged t = {.s = script_new()};
		uint32_t work = script_stack(t.s, "main;work"),
			 keep = script_stack(t.s, "main;keep");

		script_alloc(t.s, keep, MiB);
		for (uint64_t i = 0; i < 100; i++)
			script_release(t.s, script_alloc(t.s, work, (20 + i * 37 % 80) * MiB));
		if (before)
			script_release(t.s, script_alloc(t.s, work, 170 * MiB));
		script_failed(t.s, work, 164 * MiB);
		t.scene.limit.bytes = 172 * MiB;
		t.scene.limit.usage = 12 * MiB;
		stage(&t, detect_oversized_intermediate, true);
		assert_int_equal(!t.rc && t.f.strength > 0.9, !before);
		strike(&t);
	}
	(void)state;
}

/* Many small blocks of one call, if that is known; as weak as a guess if it only may be one. */
static void test_one_call(void **state)
{
	static const struct {
		enum open_call as;
		double least, most;
	} cases[] = {{OPEN_CALL_NO, 0, 0}, {OPEN_CALL_MAYBE, 0.1, 0.39}, {OPEN_CALL_YES, 0.8, 1}};

	for (size_t c = 0; c < 3; c++) {
		struct staged t = {.s = script_new(), .open_call = cases[c].as};
		uint32_t row = script_stack(t.s, "main;answer;fetch");

		for (int i = 0; i < 3000; i++)
			script_alloc(t.s, row, 20000);
		script_failed(t.s, row, 20000);
		stage(&t, detect_oversized_intermediate, true);
		if (cases[c].as == OPEN_CALL_NO) {
			assert_int_equal(t.rc, DETECT_SILENT);
		} else {
			assert_int_equal(t.rc, 0);
			assert_true(
			    t.f.strength >= cases[c].least && t.f.strength <= cases[c].most);
			assert_string_equal(blamed(&t), "fetch");
			assert_int_equal(t.f.bytes, 3000 * 20000);
			assert_int_equal(t.f.request_bytes, 20000);
		}
		strike(&t);
	}
	(void)state;
}

/* A request of the open call that made everything else is a part of the same object. */
static void test_asked_in_the_call(void **state)
{
	struct symbol inside = {.function = "collect"}, other = {.function = "serve"};

	for (int way = 0; way < 2; way++) {
		struct staged t = {
		    .s = script_new(), .open_call = OPEN_CALL_YES, .scene = {.space = "cuda:0"}};
		uint32_t part = script_stack(t.s, "main;collect;encode");

		for (int i = 0; i < 400; i++)
			script_release(t.s, script_alloc(t.s, part, 50000));
		for (int i = 0; i < 400; i++)
			script_alloc(t.s, part, 10000);
		script_failed(t.s, script_stack(t.s, "main;collect;join"), 4000000);
		stage(&t, detect_oversized_intermediate, true);
		for (uint32_t i = 0; i < t.p->count; i++)
			t.p->list[i].call.function = way ? &inside : &other;
		t.p->list[t.p->failed].call.open = OPEN_CALL_NO;
		assert_int_equal(detect_oversized_intermediate(&t.scene, &t.f), 0);
		assert_int_equal(t.f.request_bytes, 4000000);
		assert_int_equal(t.f.bytes, way ? 4000000 : 0);
		strike(&t);
	}
	(void)state;
}

/* A table stood while requests were served, and fitted: only a copy as large, of a later request,
 * is the matter, and the growth to explain begins with what stands. */
static void test_beside_standing(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t work = script_stack(t.s, "main;serve");

	script_alloc(t.s, script_stack(t.s, "main;fill"), 80 * MiB);
	for (int i = 0; i < 2000; i++)
		script_release(t.s, script_alloc(t.s, work, 20000));
	script_alloc(t.s, script_stack(t.s, "main;copy"), 80 * MiB);
	stage(&t, detect_oversized_intermediate, true);
	assert_int_equal(t.rc, 0);
	assert_string_equal(blamed(&t), "copy");
	assert_int_equal(t.f.bytes, 80 * MiB);
	assert_true(t.f.strength > 0.9);
	assert_true(t.f.start_ns > t.p->first_ns);
	strike(&t);
	(void)state;
}

/* What a name says is loaded, before any work, may be no request's; a name does not tell of what
 * comes later. */
static void test_loaded(void **state)
{
	double strength[3];

	for (int way = 0; way < 3; way++) {
		struct staged t = {.s = script_new(), .open_call = OPEN_CALL_YES};
		uint32_t part = script_stack(t.s, way ? "main;load_parts" : "main;parts");

		for (int i = 0; way == 2 && i < 2000; i++)
			script_release(
			    t.s, script_alloc(t.s, script_stack(t.s, "main;serve"), 20000));
		for (uint64_t i = 0; i < 3; i++)
			script_alloc(t.s, part, (20 + 7 * i) * MiB);
		stage(&t, detect_oversized_intermediate, true);
		assert_int_equal(t.rc, 0);
		strength[way] = t.f.strength;
		strike(&t);
	}
	assert_true(strength[1] < 0.6 * strength[0]);
	assert_float_equal(strength[2], strength[0], 0.1);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_asked_in_the_call),
	    cmocka_unit_test(test_beside_standing),
	    cmocka_unit_test(test_loaded),
	    cmocka_unit_test(test_request),
	    cmocka_unit_test(test_start),
	    cmocka_unit_test(test_first_on_a_device),
	    cmocka_unit_test(test_young_and_old_blocks),
	    cmocka_unit_test(test_served_beside),
	    cmocka_unit_test(test_paced),
	    cmocka_unit_test(test_late_start),
	    cmocka_unit_test(test_copies),
	    cmocka_unit_test(test_two_at_once),
	    cmocka_unit_test(test_copy_of_standing),
	    cmocka_unit_test(test_forms),
	    cmocka_unit_test(test_next_pile),
	    cmocka_unit_test(test_slow),
	    cmocka_unit_test(test_set_up),
	    cmocka_unit_test(test_pile),
	    cmocka_unit_test(test_one_call),
	    cmocka_unit_test(test_ordinary_request),
	    cmocka_unit_test(test_more_than_the_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
