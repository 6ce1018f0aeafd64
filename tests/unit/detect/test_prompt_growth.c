/* Speaks of growing blocks only. */
#include "detect/scene.h"

static void test_transient_and_history(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t keep = script_stack(t.s, "main;remember"), build = script_stack(t.s, "main;build");
	uint64_t history = 0;
	bool kept = false;

	for (uint64_t turn = 1; turn < 100; turn++) {
		script_alloc(t.s, keep, 10000);
		history += 10000;
		script_release(t.s, script_alloc(t.s, build, turn * 10000));
	}
	script_failed(t.s, build, 1000000);
	stage(&t, detect_prompt_growth, true);
	assert_int_equal(t.rc, 0);
	assert_string_equal(blamed(&t), "build");
	assert_true(t.f.strength >= 0.9);
	assert_in_range(t.f.request_bytes, 900000, 1000000);
	for (uint32_t i = 0; i < t.f.claim_count; i++)
		if (t.f.claims[i].callsite == callsites_of_stack(t.p, STACK_STATS_HEAP, keep)) {
			kept = true;
			assert_int_equal(t.f.claims[i].rule, RULE_KEEP_BYTES);
			assert_in_range(t.f.claims[i].bytes, history * 3 / 4, history);
		}
	assert_true(kept);
	strike(&t);
	(void)state;
}

/* The failed line was never reached before: it copies the growing block beside it, or makes
 * another block. */
static void test_request_of_a_new_line(void **state)
{
	for (int other = 0; other < 2; other++) {
		struct staged t = {.s = script_new()};
		uint32_t build = script_stack(t.s, "main;build@m.c:3");
		uint32_t copy = script_stack(t.s, other ? "main;load@m.c:90" : "main;build@m.c:4");

		for (uint64_t turn = 1; turn < 100; turn++)
			script_release(t.s, script_alloc(t.s, build, turn * 10000));
		script_failed(t.s, copy, 990000);
		stage(&t, detect_prompt_growth, true);
		assert_int_equal(t.rc, 0);
		assert_int_equal(t.f.request_bytes != 0, !other);
		strike(&t);
	}
	(void)state;
}

/* As large as the input makes it, in any order: a prompt's, if no other form of the input takes
 * that size; a model's, if it is known to be one. */
static void test_follows_the_input(void **state)
{
	static const uint64_t asked[] = {3000, 800, 9000, 2000, 700, 5000, 1200, 7000, 900, 400000};
	static const struct {
		uint64_t times;
		enum role role;
		bool growth;
	} cases[] = {{64, ROLE_NONE, true}, {12, ROLE_NONE, false}, {12, ROLE_MODEL_CALL, true},
	    {4, ROLE_MODEL_CALL, false}, {64, ROLE_EMBEDDING, false}, {64, ROLE_TOOL_CALL, false}};

	for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
		struct staged t = {.s = script_new()};
		uint32_t render = script_stack(t.s, "main;render"),
			 make = script_stack(t.s, "main;make");
		enum role roles[8];

		for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
			uint64_t input = script_alloc(t.s, render, asked[i]);

			if (i + 1 == sizeof(asked) / sizeof(*asked)) {
				script_failed(t.s, make, cases[c].times * asked[i]);
				break;
			}
			script_release(t.s, script_alloc(t.s, make, cases[c].times * asked[i]));
			script_release(t.s, input);
		}
		for (size_t i = 0; i < 8; i++)
			roles[i] = cases[c].role;
		t.scene.roles = roles;
		stage(&t, detect_prompt_growth, true);
		assert_int_equal(t.rc, cases[c].growth ? 0 : DETECT_SILENT);
		if (cases[c].growth) {
			assert_string_equal(blamed(&t), "make");
			assert_true(t.f.strength >= 0.8);
			assert_true(t.f.request_bytes > cases[c].times * 390000);
		}
		/* Then it is no accident of one request. */
		assert_int_equal(detect_oversized_intermediate(&t.scene, &t.f), 0);
		assert_true(cases[c].growth ? t.f.strength <= 0.5 : t.f.strength > 0.5);
		strike(&t);
	}
	(void)state;
}

/* Blocks of one size, more from call to call, each time released; as many in any order do not
 * grow. */
static void test_piles(void **state)
{
	static const uint64_t any[] = {300, 90, 420, 150, 60, 510, 240, 330, 30, 480, 120, 270, 450,
	    180, 360, 210, 390, 540, 570, 600};

	for (int rising = 0; rising < 2; rising++) {
		struct staged t = {.s = script_new()};
		uint32_t page = script_stack(t.s, "main;page");
		static uint64_t pages[640];

		for (uint64_t call = 0; call < 21; call++) {
			uint64_t count = call == 20 ? 640 : rising ? 30 * (call + 1) : any[call];

			for (uint64_t i = 0; i < count; i++)
				pages[i] = script_alloc(t.s, page, 20000);
			for (uint64_t i = 0; call < 20 && i < count; i++)
				script_release(t.s, pages[i]);
		}
		script_failed(t.s, page, 20000);
		stage(&t, detect_prompt_growth, true);
		if (rising) {
			assert_int_equal(t.rc, 0);
			assert_string_equal(blamed(&t), "page");
			assert_true(t.f.strength >= 0.9);
			assert_int_equal(t.f.request_bytes, 20000);
			assert_int_equal(t.f.claim_count, 1);
			assert_int_equal(t.f.claims[0].bytes, 610 * 20000);
			assert_true(t.p->list[t.f.blame].buildup.grows);
			assert_int_equal(t.p->list[t.f.blame].buildup.records, 21);
		} else {
			assert_int_equal(t.rc, DETECT_SILENT);
		}
		strike(&t);
	}
	(void)state;
}

static void test_silent(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t leak = script_stack(t.s, "main;leak"), work = script_stack(t.s, "main;work");

	for (uint64_t i = 1; i < 500; i++) {
		script_alloc(t.s, leak, 5000);
		script_release(t.s, script_alloc(t.s, work, 100000 + i % 3));
	}
	stage(&t, detect_prompt_growth, true);
	assert_int_equal(t.rc, DETECT_SILENT);
	strike(&t);

	/* A table of pointers beside leaking blocks. */
	t = (struct staged){.s = script_new()};
	leak = script_stack(t.s, "main;leak");
	work = script_stack(t.s, "main;table");
	for (uint64_t i = 0, room = 16, array = script_alloc(t.s, work, 128); i < 50000; i++) {
		if (i == room) {
			room *= 2;
			array = script_realloc(t.s, array, work, room * 8);
		}
		script_alloc(t.s, leak, 50);
	}
	stage(&t, detect_prompt_growth, true);
	assert_int_equal(t.rc, DETECT_SILENT);
	strike(&t);
	(void)state;
}

/* Arenas that a growing buffer's line took have one size, and hold any small objects. */
static void test_arenas(void **state)
{
	uint64_t without = 0;

	for (int arenas = 0; arenas < 2; arenas++) {
		struct staged t = {.s = script_new()};
		uint32_t at = script_stack(t.s, "main@/app/main.py:9;search@/app/main.py:5");

		for (uint64_t turn = 1; turn < 100; turn++) {
			if (arenas)
				script_map(t.s, at, 10000, 0, TRACE_BACKING_ANON);
			if (turn < 99)
				script_release(t.s, script_alloc(t.s, at, turn * 10000));
			else
				script_alloc(t.s, at, turn * 10000);
		}
		script_failed(t.s, at, 1000000);
		stage(&t, detect_prompt_growth, true);
		for (uint32_t i = 0; i < t.p->count; i++)
			t.p->list[i].arena_share.any = arenas;
		memset(&t.f, 0, sizeof(t.f));
		assert_int_equal(detect_prompt_growth(&t.scene, &t.f), 0);
		assert_string_equal(blamed(&t), "search");
		if (arenas)
			assert_in_range(t.f.bytes, without - without / 8, without + without / 8);
		without = t.f.bytes;
		strike(&t);
	}
	(void)state;
}

/* Blocks that come and go with a growing list hold its items. */
static void test_arenas_of_entries(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t at = script_stack(t.s, "main@/app/main.py:9;tokens@/app/main.py:5");
	uint64_t arena[60], list = 0;

	for (uint64_t turn = 1; turn <= 60; turn++) {
		list = script_alloc(t.s, at, turn * 80000);
		for (uint64_t i = 0; i < turn; i++)
			arena[i] = script_map(t.s, at, 1 * MiB, 0, TRACE_BACKING_ANON);
		script_wait(t.s, 10000000);
		for (uint64_t i = 0; i < turn && turn < 60; i++)
			script_unmap(t.s, arena[i], 1 * MiB);
		if (turn < 60)
			script_release(t.s, list);
	}
	script_failed(t.s, at, 1 * MiB);
	stage(&t, detect_prompt_growth, true);
	for (uint32_t i = 0; i < t.p->count; i++)
		t.p->list[i].arena_share.any = true;
	memset(&t.f, 0, sizeof(t.f));
	assert_int_equal(detect_prompt_growth(&t.scene, &t.f), 0);
	assert_string_equal(blamed(&t), "tokens");
	assert_true(t.f.bytes >= 50 * MiB);
	strike(&t);
	(void)state;
}

/* A container asks for more by a factor; a buffer for larger and larger input hardly for more than
 * before, though its sizes have grown as the container's. */
static void test_doubling(void **state)
{
	for (int again = 0; again < 2; again++) {
		struct staged t = {.s = script_new()};
		uint32_t fill = script_stack(t.s, "main;fill");
		uint64_t size = 1000, old = script_alloc(t.s, fill, size);

		for (int i = 0; i < 24; i++) {
			uint64_t new = script_alloc(t.s, fill, size += size / 2);

			script_release(t.s, old);
			old = new;
		}
		script_failed(t.s, fill, again ? size : size + size / 2);
		stage(&t, detect_prompt_growth, true);
		assert_int_equal(t.rc, 0);
		assert_int_equal(t.f.form, again ? FORM_USUAL : FORM_DOUBLING);
		strike(&t);
	}
	(void)state;
}

/* One of many requests replaces its buffer by a larger one, again and again, beyond what any
 * before it had made; or as far as others had; or realloc() enlarges it, or it doubles. */
static void test_within_a_request(void **state)
{
	enum { BEYOND, AS_USUAL, ENLARGED, DOUBLES, WAYS };

	for (int way = BEYOND; way < WAYS; way++) {
		struct staged t = {.s = script_new()};
		uint32_t join = script_stack(t.s, "main;join");

		for (uint64_t i = 0; i < 100; i++) {
			uint64_t parts = i == 99 ? way == AS_USUAL ? 5 : 12 : 1 + i % 5, buffer = 0;

			for (uint64_t k = 1; k <= parts; k++) {
				uint64_t old = buffer,
					 size = way == DOUBLES ? 1000u << k : k * 400000;

				if (way == ENLARGED && old) {
					buffer = script_realloc(t.s, old, join, size);
					continue;
				}
				buffer = script_alloc(t.s, join, size);
				if (old)
					script_release(t.s, old);
			}
			if (i < 99)
				script_release(t.s, buffer);
			else
				script_failed(t.s, join,
				    way == DOUBLES ? 1000u << (parts + 1) : (parts + 1) * 400000);
		}
		stage(&t, detect_prompt_growth, true);
		if (way == BEYOND) {
			assert_int_equal(t.rc, 0);
			assert_string_equal(blamed(&t), "join");
			assert_int_equal(t.f.form, FORM_WITHIN);
			assert_true(t.f.strength >= 0.8);
			assert_int_equal(t.f.bytes, 11 * 400000);
			assert_int_equal(t.f.request_bytes, 12 * 400000);
		} else {
			assert_true(t.rc == DETECT_SILENT || t.f.form != FORM_WITHIN);
		}
		strike(&t);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_within_a_request),
	    cmocka_unit_test(test_arenas),
	    cmocka_unit_test(test_arenas_of_entries),
	    cmocka_unit_test(test_transient_and_history),
	    cmocka_unit_test(test_request_of_a_new_line),
	    cmocka_unit_test(test_follows_the_input),
	    cmocka_unit_test(test_piles),
	    cmocka_unit_test(test_silent),
	    cmocka_unit_test(test_doubling),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
