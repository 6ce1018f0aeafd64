/* What a process held when the recorder was attached to it. */
#include "model/read.h"
#include "model/script.h"

static void account(struct script *s, uint64_t arena, uint64_t mapped, uint64_t used)
{
	script_set(s, TRACE_LEVEL_MALLOC_ARENA, arena);
	script_set(s, TRACE_LEVEL_MALLOC_MMAP, mapped);
	script_set(s, TRACE_LEVEL_MALLOC_USED, used);
	script_set(s, TRACE_LEVEL_MALLOC_FREE, arena - used);
}

static void test_not_attached(void **state)
{
	struct script *s = script_new();
	struct model *m;

	account(s, 100 * MiB, 0, 90 * MiB);
	script_set(s, TRACE_LEVEL_RSS, 120 * MiB);
	script_set(s, TRACE_LEVEL_BEFORE_FREED, 5 * MiB);
	script_sample(s);
	m = read_all(script_feed(s));
	assert_false(m->base.attached);
	assert_int_equal(base_left(&m->base, true), 0);
	assert_int_equal(base_left(&m->base, false), 0);
	assert_int_equal(m->measured.malloc.at[0].before, 0);
	model_free(m);
	script_free(s);
	(void)state;
}

/* The first account is the base; later ones, and what was freed since, do not raise it. */
static void test_base(void **state)
{
	struct script *s = script_new();
	struct model *m;

	script_info(s, "attached", "7000000000");
	account(s, 100 * MiB, 20 * MiB, 90 * MiB);
	script_set(s, TRACE_LEVEL_RSS, 200 * MiB);
	script_set(s, TRACE_LEVEL_RSS_ANON, 150 * MiB);
	script_set(s, TRACE_LEVEL_RSS_FILE, 40 * MiB);
	script_set(s, TRACE_LEVEL_RSS_SHMEM, 10 * MiB);
	script_set(s, TRACE_LEVEL_STACKS, 1 * MiB);
	script_set(s, TRACE_LEVEL_DATA, 170 * MiB);
	script_set(s, TRACE_LEVEL_WHYOOM_ANON, 2 * MiB);
	script_sample(s);
	script_alloc(s, script_stack(s, "main;grow"), 30 * MiB);
	account(s, 130 * MiB, 20 * MiB, 95 * MiB);
	script_set(s, TRACE_LEVEL_BEFORE_FREED, 25 * MiB - 80);
	script_set(s, TRACE_LEVEL_BEFORE_FREED_BLOCKS, 10);
	script_sample(s);
	m = read_all(script_feed(s));
	assert_true(m->base.attached && m->base.known);
	assert_int_equal(m->base.ran_ns, 7000000000u);
	assert_int_equal(m->base.blocks, 110 * MiB);
	assert_int_equal(m->base.resident, 27 * MiB);
	assert_int_equal(m->base.writable, 48 * MiB);
	assert_int_equal(base_blocks_left(&m->base), 85 * MiB);
	assert_int_equal(base_left(&m->base, true), 112 * MiB);
	assert_int_equal(base_left(&m->base, false), 133 * MiB);
	assert_int_equal(m->measured.malloc.at[0].before, 110 * MiB);
	assert_int_equal(m->measured.malloc.at[1].before, 85 * MiB);
	/* 130 + 20 MiB are held: 30 by events, 85 from before, 35 beside. */
	assert_int_equal(allocator_stats_beside(&m->measured.malloc.at[1]), 35 * MiB);
	model_free(m);
	script_free(s);
	(void)state;
}

/* A recorder of samples does not see what is freed of before: the account does. */
static void test_uncounted(void **state)
{
	struct script *s = script_new();
	struct model *m;

	script_info(s, "attached", "0");
	account(s, 100 * MiB, 0, 100 * MiB);
	script_set(s, TRACE_LEVEL_RSS, 100 * MiB);
	script_sample(s);
	account(s, 100 * MiB, 0, 40 * MiB);
	script_sample(s);
	m = read_all(script_feed(s));
	assert_true(m->base.attached);
	assert_int_equal(m->base.ran_ns, 0);
	assert_int_equal(m->measured.malloc.at[1].before, 40 * MiB);
	model_free(m);
	script_free(s);
	(void)state;
}

/* Counts that no program can have make no negative sum. */
static void test_hostile(void **state)
{
	struct script *s = script_new();
	struct model *m;

	script_info(s, "attached", "18446744073709551615");
	account(s, 100, 0, 100);
	script_set(s, TRACE_LEVEL_MALLOC_USED, UINT64_MAX);
	script_set(s, TRACE_LEVEL_RSS, 50);
	script_set(s, TRACE_LEVEL_RSS_ANON, 50);
	script_set(s, TRACE_LEVEL_BEFORE_FREED, UINT64_MAX);
	script_set(s, TRACE_LEVEL_BEFORE_FREED_BLOCKS, UINT64_MAX);
	script_sample(s);
	m = read_all(script_feed(s));
	assert_int_equal(m->base.blocks, 100);
	assert_int_equal(m->base.resident, 0);
	assert_int_equal(base_left(&m->base, true), 0);
	model_free(m);
	script_free(s);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_not_attached),
	    cmocka_unit_test(test_base),
	    cmocka_unit_test(test_uncounted),
	    cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
