/* Requests as a short list: repetitions are folded, and unfolding gives the record. */
#include "model/unit.h"

#include <errno.h>

#include "model/script.h"
#include "reduce/steps.h"
#include "verdict/verdict.h"

#define MIB (1ull << 20)

static struct script *script;
static struct verdict_result verdict;
static struct program program;
static uint32_t here, there;

static int set_up(void **state)
{
	script = script_new();
	here = script_stack(script, "main@/app/m.c:1;keep@/app/m.c:20");
	there = script_stack(script, "main@/app/m.c:1;work@/app/m.c:30");
	script_set(script, TRACE_LEVEL_LIMIT_AS, 100 * MIB);
	script_set(script, TRACE_LEVEL_VSIZE, 99 * MIB);
	return 0;
}

static int tear_down(void **state)
{
	steps_fini(&program);
	verdict_fini(&verdict);
	script_free(script);
	return 0;
}

static void read_steps(void)
{
	script_failed(script, here, 2 * MIB);
	script_exit(script, 1);
	assert_int_equal(verdict_of_feed(script_feed(script), NULL, &verdict, NULL), 0);
	assert_int_equal(steps_read(&verdict, &program, NULL), 0);
	assert_int_equal(program.last.size, 2 * MIB);
}

/* The n-th step, as a program would come to it. */
static struct program_step unfolded(uint64_t n)
{
	struct program_step s = {0};

	for (size_t i = 0; i < program.rows.count; i += program.rows.items[i].rows) {
		const struct program_step *first = &program.rows.items[i];
		uint64_t all = (uint64_t)first->rows * first->times;

		if (n >= all) {
			n -= all;
			continue;
		}
		s = first[n % first->rows];
		s.block += (uint32_t)(s.block_step * (int64_t)(n / first->rows));
		s.size += (uint64_t)(s.size_step * (int64_t)(n / first->rows));
		return s;
	}
	fail_msg("there are fewer steps");
	return s;
}

static void test_evenly(void **state)
{
	for (uint64_t i = 0; i < 1000; i++)
		script_alloc(script, here, 1000 + 16 * i);
	read_steps();
	assert_int_equal(program.rows.count, 1);
	assert_int_equal(program.count, 1000);
	assert_int_equal(program.rows.items[0].times, 1000);
	assert_int_equal(unfolded(999).size, 1000 + 16 * 999);
	assert_int_equal(unfolded(999).block, 999);
	assert_int_equal(program.live, 1000 * 1000 + 16 * 999 * 500);
}

static void test_together(void **state)
{
	for (uint64_t i = 0; i < 50; i++) {
		uint64_t p = script_alloc(script, there, 500);

		script_alloc(script, here, 4096);
		script_release(script, p);
	}
	read_steps();
	assert_int_equal(program.rows.count, 3);
	assert_int_equal(program.rows.items[0].rows, 3);
	assert_int_equal(program.rows.items[0].times, 50);
	assert_int_equal(unfolded(3 * 49 + 2).what, STEP_FREE);
	assert_int_equal(unfolded(3 * 49 + 2).block, unfolded(3 * 49).block);
	assert_int_equal(program.live, 50 * 4096);
}

/* Nothing repeats: each step is a row, and none is lost. */
static void test_unevenly(void **state)
{
	uint64_t sizes[300], seed = 1;

	for (int i = 0; i < 300; i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		sizes[i] = 16 + (seed >> 40);
		script_alloc(script, here, sizes[i]);
	}
	read_steps();
	assert_int_equal(program.count, 300);
	for (uint64_t i = 0; i < 300; i++)
		assert_int_equal(unfolded(i).size, sizes[i]);
}

static void test_moved(void **state)
{
	uint64_t p = script_alloc(script, here, MIB);

	for (uint64_t i = 2; i <= 20; i++)
		p = script_realloc(script, p, here, i * MIB);
	read_steps();
	assert_int_equal(program.rows.count, 2);
	assert_int_equal(program.rows.items[1].what, STEP_REALLOC);
	assert_int_equal(unfolded(19).size, 20 * MIB);
	assert_int_equal(unfolded(19).block, 0);
	assert_int_equal(program.blocks, 2); /* with the refused one */
	assert_int_equal(program.live, 20 * MIB);
}

static void test_threads(void **state)
{
	for (int i = 0; i < 10; i++) {
		script_thread(script, i % 2 ? 7 : 1, 0);
		script_alloc(script, here, 100);
	}
	script_thread(script, 1, 0);
	read_steps();
	assert_int_equal(program.threads, 2);
	assert_int_equal(unfolded(9).thread, 1);
	steps_join(&program);
	assert_int_equal(program.threads, 1);
	assert_int_equal(unfolded(9).thread, 0);
}

/* Words of a trace cannot end the comment that they are in. */
static void test_program(void **state)
{
	uint32_t evil = script_stack(script, "main@/app/m.c:1;a*/int b=1;@/app/m.c:20");
	struct str text = {0};
	struct err err;

	script_alloc(script, evil, 64);
	for (int i = 0; i < 20; i++)
		script_alloc(script, here, MIB);
	read_steps();
	assert_int_equal(emit_c(&verdict, &program, &text, &err), 0);
	assert_null(strstr(str_text(&text), "a*/int"));
	str_free(&text);
}

/* Too many to list singly: the live blocks at the failure, in blocks of each call site's mean
 * size. */
static void test_summed(void **state)
{
	struct str text = {0};
	uint64_t seed = 1, bytes = 0, size;
	struct err err;

	for (int i = 0; i < 2000; i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		size = 1000 + (seed >> 48);
		if (i % 3) {
			bytes += size;
			script_alloc(script, here, size);
		} else {
			script_release(script, script_alloc(script, there, size));
		}
	}
	read_steps();
	assert_true(program.rows.count > 1000);
	assert_int_equal(emit_c(&verdict, &program, &text, &err), 0);
	assert_true(program.summed);
	assert_int_equal(program.rows.count, 1);
	assert_int_equal(program.rows.items[0].times, 1333);
	assert_int_equal(program.rows.items[0].size, bytes / 1333);
	assert_int_equal(program.last.block, 1333);
	assert_non_null(strstr(str_text(&text), "What had been"));
	str_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_evenly, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_together, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_unevenly, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_moved, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_threads, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_program, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_summed, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
