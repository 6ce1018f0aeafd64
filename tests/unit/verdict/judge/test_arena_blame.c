/* Who is blamed for small objects that stay: their arenas are asked for by a line that makes much
 * and keeps nothing. */
#include "verdict/judged.h"

#define ARENA MiB

enum trail {
	ARRAYS, /* a line keeps an array for each request's objects */
	TABLE, /* a line enlarges one table, which lists what is kept */
	OTHER, /* a line asks for a quarter of the arenas, and nothing else is seen of it */
	NOTHING, /* two lines ask for arenas, and neither keeps what it makes */
	KEPT, /* the line that asks for the arenas keeps its arrays */
};

static void judge_trail(enum trail trail, struct verdict_result *r, struct script **out)
{
	struct script *s = script_new();
	uint32_t work = script_stack(s, "main@/app/m.py:9;serve@/app/m.py:5;work@/app/m.py:33");
	uint32_t make = script_stack(s, "main@/app/m.py:9;serve@/app/m.py:6;make@/app/m.py:24");
	uint32_t add = script_stack(s, "main@/app/m.py:9;serve@/app/m.py:7;add@/app/m.py:28");
	uint32_t read = script_stack(s, "main@/app/m.py:9;serve@/app/m.py:8;read@/app/m.py:40");
	uint32_t step = script_stack(s, "main@/app/m.py:9;step@/app/m.py:50");
	uint64_t table = 0, size = 1000;

	script_info(s, "python", "3.11.7");
	script_info(s, "exe", "/usr/bin/python3");
	for (unsigned i = 0; i < 200; i++) {
		uint32_t by = trail == NOTHING && i % 2 ? read : work;
		uint64_t array = script_alloc(s, by, 40 * KiB);

		for (unsigned k = 0; k < 20; k++)
			script_release(s, script_alloc(s, step, 2 * MiB));
		if (trail == OTHER && i % 4 == 3)
			by = make;
		script_map(s, by, ARENA, 0, TRACE_BACKING_ANON);
		if (trail != KEPT)
			script_release(s, array);
		if (trail == ARRAYS)
			script_alloc(s, make, 24 * KiB);
		if (trail == TABLE && 100 * i >= size) {
			size += size / 2;
			if (table)
				table = script_realloc(s, table, add, size);
			else
				table = script_alloc(s, add, size);
		}
	}
	script_set(s, TRACE_LEVEL_LIMIT_AS, 212 * MiB);
	script_set(s, TRACE_LEVEL_VSIZE, 211 * MiB);
	script_failed(s, work, ARENA);
	script_exit(s, 1);
	judge_script(s, NULL, r);
	*out = s;
}

static bool has_fact(const struct verdict *v, enum fact fact)
{
	for (size_t i = 0; i < v->evidence_count; i++)
		if (v->evidence[i].fact == fact)
			return true;
	return false;
}

static void test_trails(void **state)
{
	static const struct {
		const char *function;
		enum fact fact;
	} wanted[] = {
	    [ARRAYS] = {"make", FACT_ARENA_ARRAYS},
	    [TABLE] = {"add", FACT_ARENA_TABLE},
	    [OTHER] = {"make", FACT_ARENA_OTHER},
	    [NOTHING] = {"serve", FACT_ARENA_COMMON},
	};

	for (enum trail trail = ARRAYS; trail <= NOTHING; trail++) {
		struct verdict_result r;
		struct script *s;

		judge_trail(trail, &r, &s);
		assert_int_equal(r.verdict.cause, CAUSE_LEAK);
		assert_string_equal(r.verdict.blame.function, wanted[trail].function);
		assert_true(has_fact(&r.verdict, wanted[trail].fact));
		assert_string_equal(r.verdict.blame.stack.symbols[r.verdict.blame.frame].function,
		    wanted[trail].function);
		verdict_fini(&r);
		script_free(s);
	}
	(void)state;
}

/* A line that keeps what it makes stays blamed. */
static void test_kept(void **state)
{
	struct verdict_result r;
	struct script *s;

	judge_trail(KEPT, &r, &s);
	assert_int_equal(r.verdict.cause, CAUSE_LEAK);
	assert_string_equal(r.verdict.blame.function, "work");
	for (enum fact fact = FACT_ARENA_ARRAYS; fact <= FACT_ARENA_COMMON; fact++)
		assert_false(has_fact(&r.verdict, fact));
	verdict_fini(&r);
	script_free(s);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_trails),
	    cmocka_unit_test(test_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
