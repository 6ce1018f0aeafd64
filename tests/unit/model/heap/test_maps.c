/* Mappings: parts, overlaps, moves, and calls that failed after they were noted. */
#include "model/model.h"
#include "model/read.h"
#include "model/script.h"

#define PAGE 4096ull

static void done(struct script *s, struct model *m)
{
	model_free(m);
	script_free(s);
}

static void test_parts(void **state)
{
	struct script *s = script_new();
	uint32_t a = script_stack(s, "main;a");
	struct model *m;

	script_map_at(s, a, 100 * PAGE, 10 * PAGE, 0);
	script_unmap(s, 103 * PAGE, 2 * PAGE); /* a free range */
	m = read_all(script_feed(s));
	assert_int_equal(m->maps.bytes, 8 * PAGE);
	assert_int_equal(stack_stats_live_count(find_stack(m, a, STACK_STATS_MAP)), 2);
	model_free(m);
	script_unmap(s, 90 * PAGE, 100 * PAGE); /* all, and addresses that were never mapped */
	m = read_all(script_feed(s));
	assert_int_equal(m->maps.bytes, 0);
	assert_int_equal(stack_stats_live_bytes(find_stack(m, a, STACK_STATS_MAP)), 0);
	done(s, m);
	(void)state;
}

static void test_fixed_over_others(void **state)
{
	struct script *s = script_new();
	uint32_t a = script_stack(s, "main;a"), b = script_stack(s, "main;b");
	struct model *m;

	script_map_at(s, a, 100 * PAGE, 10 * PAGE, 0);
	script_map_at(s, b, 105 * PAGE, 10 * PAGE, TRACE_MAP_FIXED);
	m = read_all(script_feed(s));
	assert_int_equal(m->maps.bytes, 15 * PAGE);
	assert_int_equal(stack_stats_live_bytes(find_stack(m, a, STACK_STATS_MAP)), 5 * PAGE);
	assert_int_equal(stack_stats_live_bytes(find_stack(m, b, STACK_STATS_MAP)), 10 * PAGE);
	done(s, m);
	(void)state;
}

static void test_undone(void **state)
{
	struct script *s = script_new();
	uint32_t a = script_stack(s, "main;a");
	struct model *m;

	script_map_at(s, a, 100 * PAGE, 10 * PAGE, 0);
	script_unmap(s, 102 * PAGE, 3 * PAGE);
	script_ununmap(s, 102 * PAGE, 3 * PAGE);
	m = read_all(script_feed(s));
	assert_int_equal(m->maps.bytes, 10 * PAGE);
	done(s, m);
	(void)state;
}

/* However many mappings a failed call was to remove. */
static void test_many_undone(void **state)
{
	struct script *s = script_new();
	uint32_t a = script_stack(s, "main;a"), b = script_stack(s, "main;b");
	struct model *m;

	for (uint64_t i = 0; i < 1000; i++)
		script_map_at(s, i % 3 ? a : b, (100 + 2 * i) * PAGE, PAGE, 0);
	script_unmap(s, 100 * PAGE, 2000 * PAGE);
	script_ununmap(s, 100 * PAGE, 2000 * PAGE);
	m = read_all(script_feed(s));
	assert_int_equal(m->maps.bytes, 1000 * PAGE);
	assert_int_equal(m->maps.count, 1000);
	done(s, m);
	(void)state;
}

static void test_kinds(void **state)
{
	struct script *s = script_new();
	uint32_t a = script_stack(s, "main;a");
	struct model *m;

	script_map(s, a, PAGE, TRACE_MAP_SHARED, TRACE_BACKING_FILE);
	script_map_at(s, a, 200 * PAGE, 2 * PAGE, TRACE_MAP_STACK);
	script_map_at(s, a, 300 * PAGE, 4 * PAGE, TRACE_MAP_ALLOCATOR);
	script_map(s, a, 8 * PAGE, 0, TRACE_BACKING_FILE);
	script_map_at(s, a, 500 * PAGE, 16 * PAGE, 0);
	m = read_all(script_feed(s));
	assert_int_equal(m->maps.shared_bytes, PAGE); /* the file keeps what is written there */
	assert_int_equal(m->maps.stack_bytes, 2 * PAGE);
	assert_int_equal(m->maps.allocator_bytes, 4 * PAGE);
	assert_int_equal(m->maps.file_bytes, 8 * PAGE);
	assert_int_equal(m->maps.bytes, 16 * PAGE);
	assert_int_equal(m->peak.bytes, 16 * PAGE); /* blocks lie in the allocator's own */
	done(s, m);
	(void)state;
}

/* Anonymous, of a memfd or of /dev/shm: memory like any other, except that RLIMIT_DATA does not
 * charge it. */
static void test_shared(void **state)
{
	const char *const limits[] = {NULL, "unlimited", "500000000"};

	for (size_t i = 0; i < 3; i++) {
		bool counts = i < 2;
		struct script *s = script_new();
		uint32_t a = script_stack(s, "main;a"), b = script_stack(s, "main;b");
		struct model *m;

		if (limits[i])
			script_info(s, "limit.data", limits[i]);
		script_map_at(s, a, 100 * PAGE, 8 * PAGE, TRACE_MAP_SHARED);
		script_map(s, a, 4 * PAGE, TRACE_MAP_SHARED, TRACE_BACKING_SHM);
		script_map(s, b, 2 * PAGE, TRACE_MAP_SHARED, TRACE_BACKING_MEMFD);
		script_map_at(s, b, 500 * PAGE, 16 * PAGE, 0);
		script_unmap(s, 104 * PAGE, PAGE);
		m = read_all(script_feed(s));
		assert_int_equal(m->maps.bytes, (counts ? 29 : 16) * PAGE);
		assert_int_equal(m->maps.charged_shared_bytes, counts ? 13 * PAGE : 0);
		assert_int_equal(m->maps.shared_bytes, counts ? 0 : 13 * PAGE);
		assert_int_equal(m->peak.bytes, (counts ? 30 : 16) * PAGE);
		assert_int_equal(m->peak.shared_bytes, counts ? 14 * PAGE : 0);
		assert_int_equal(timeline_came(&m->timeline, m->run.last_ns, CAME_SHARED),
		    counts ? 13 * PAGE : 0);
		done(s, m);
	}
	(void)state;
}

/* mremap that moves: the old range tells the kind of mapping. */
static void test_move(void **state)
{
	struct script *s = script_new();
	uint32_t a = script_stack(s, "main;a");
	struct model *m;

	script_map_at(s, a, 100 * PAGE, 4 * PAGE, TRACE_MAP_SHARED);
	script_unmap(s, 100 * PAGE, 4 * PAGE);
	script_map_at(s, a, 900 * PAGE, 8 * PAGE, TRACE_MAP_REMAP);
	m = read_all(script_feed(s));
	assert_int_equal(m->maps.charged_shared_bytes, 8 * PAGE);
	assert_int_equal(m->maps.bytes, 8 * PAGE);
	done(s, m);
	(void)state;
}

static void test_absurd(void **state)
{
	struct script *s = script_new();
	uint32_t a = script_stack(s, "main;a");
	struct model *m;

	script_map_at(s, a, UINT64_MAX - PAGE, 10 * PAGE, 0);
	script_map_at(s, a, 0, UINT64_MAX, 0);
	script_map_at(s, UINT32_MAX, 5 * PAGE, PAGE, 0);
	script_unmap(s, UINT64_MAX, UINT64_MAX);
	m = read_all(script_feed(s));
	assert_int_equal(m->maps.bytes, PAGE);
	done(s, m);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_parts),
	    cmocka_unit_test(test_fixed_over_others),
	    cmocka_unit_test(test_undone),
	    cmocka_unit_test(test_many_undone),
	    cmocka_unit_test(test_kinds),
	    cmocka_unit_test(test_shared),
	    cmocka_unit_test(test_move),
	    cmocka_unit_test(test_absurd),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
