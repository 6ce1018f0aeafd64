/* malloc's free memory: who is blamed for it, and when it is the cause. */
#include "verdict/judged.h"

/* Buffers come and go between records that stay; then one more buffer is refused. `free`: bytes
 * that malloc's account has beside the live blocks; 0: no account. */
static void received(
    unsigned count, uint64_t free, uint64_t stay, struct verdict_result *r, struct script **out)
{
	struct script *s = script_new();
	uint32_t receive = script_stack(s, "main@/app/m.c:9;receive@/app/m.c:3");
	uint32_t keep = script_stack(s, "main@/app/m.c:9;keep@/app/m.c:5");
	uint64_t live;

	for (unsigned i = 0; i < count; i++) {
		uint64_t buffer = script_alloc(s, receive, 48 * KiB);

		script_alloc(s, keep, stay);
		script_release(s, buffer);
	}
	live = script_live(s);
	script_set(s, TRACE_LEVEL_LIMIT_AS, live + count * 48 * KiB + 4 * MiB);
	script_set(s, TRACE_LEVEL_VSIZE, live + count * 48 * KiB + 4 * MiB);
	if (free) {
		script_set(s, TRACE_LEVEL_MALLOC_ARENA, live + free);
		script_set(s, TRACE_LEVEL_MALLOC_FREE, free);
	}
	script_failed(s, receive, 48 * KiB);
	script_exit(s, 1);
	judge_script(s, NULL, r);
	*out = s;
}

static void test_pinned(void **state)
{
	struct verdict_result r;
	struct script *s;

	received(2000, 2000 * 48 * KiB, 64, &r, &s);
	assert_int_equal(r.verdict.cause, CAUSE_FRAGMENTATION);
	assert_string_equal(r.verdict.blame.function, "keep");
	assert_int_equal(row_of(&r.ledger, "allocator free lists"), 2000 * 48 * KiB);
	assert_true(r.verdict.confidence >= 0.5);
	verdict_fini(&r);
	script_free(s);
	(void)state;
}

/* An allocator that tells only its total: the live blocks are known, the rest is free. */
static void test_whole(void **state)
{
	for (int asked = 0; asked < 2; asked++) {
		struct verdict_result r;
		struct script *s = script_new();
		uint32_t burst = script_stack(s, "main@/app/m.c:9;burst@/app/m.c:3");
		uint64_t live;

		for (int i = 0; i < 2000; i++)
			script_release(s, script_alloc(s, burst, 48 * KiB));
		for (int i = 0; i < 100; i++)
			script_alloc(s, burst, 64);
		live = script_live(s);
		if (asked) {
			script_set(s, TRACE_LEVEL_MALLOC_ARENA, live + 90 * MiB);
			script_set(s, TRACE_LEVEL_MALLOC_MMAP, 0);
		}
		script_set(s, TRACE_LEVEL_LIMIT_AS, live + 94 * MiB);
		script_set(s, TRACE_LEVEL_VSIZE, live + 94 * MiB);
		script_failed(s, burst, 48 * KiB);
		script_exit(s, 1);
		judge_script(s, NULL, &r);
		if (asked)
			assert_int_equal(r.verdict.cause, CAUSE_FRAGMENTATION);
		else
			assert_int_not_equal(r.verdict.cause, CAUSE_FRAGMENTATION);
		verdict_fini(&r);
		script_free(s);
	}
	(void)state;
}

/* The free ranges come from a leak: without it they would not exist. */
static void test_of_a_leak(void **state)
{
	struct verdict_result r;
	struct script *s;

	received(2000, 2000 * 8 * KiB, 40 * KiB, &r, &s);
	assert_int_equal(r.verdict.cause, CAUSE_LEAK);
	verdict_fini(&r);
	script_free(s);
	(void)state;
}

/* Without an account nothing is claimed. */
static void test_unasked(void **state)
{
	struct verdict_result r;
	struct script *s;

	received(2000, 0, 64, &r, &s);
	assert_int_not_equal(r.verdict.cause, CAUSE_FRAGMENTATION);
	verdict_fini(&r);
	script_free(s);
	(void)state;
}

/* A worker on each of many threads needs little, and malloc takes address space for each. */
static void test_reserved(void **state)
{
	struct verdict_result r;
	struct script *s = script_new();
	uint32_t work = script_stack(s, "main@/app/m.c:9;work@/app/m.c:3");
	uint32_t report = script_stack(s, "main@/app/m.c:9;report@/app/m.c:5");

	for (int round = 0; round < 30; round++) {
		uint64_t blocks[20];

		for (int i = 0; i < 20; i++)
			blocks[i] = script_alloc(s, work, 3 * KiB);
		for (int i = 0; i < 20; i++)
			script_release(s, blocks[i]);
		script_release(s, script_alloc(s, report, 60 * MiB));
	}
	script_alloc(s, work, 3 * KiB);
	script_set(s, TRACE_LEVEL_LIMIT_AS, GiB);
	script_set(s, TRACE_LEVEL_VSIZE, GiB - 4 * MiB);
	script_set(s, TRACE_LEVEL_DATA, 20 * MiB);
	script_set(s, TRACE_LEVEL_VIRT_FILE, 2 * MiB);
	script_set(s, TRACE_LEVEL_MALLOC_ARENA, 2 * MiB);
	script_set(s, TRACE_LEVEL_MALLOC_FREE, MiB);
	script_failed(s, report, 60 * MiB);
	script_exit(s, 1);
	judge_script(s, NULL, &r);
	assert_int_equal(r.verdict.cause, CAUSE_FRAGMENTATION);
	/* Not report, whose blocks had mappings of their own. */
	assert_string_equal(r.verdict.blame.function, "work");
	assert_true(row_of(&r.ledger, "kept to grow into") > 900 * MiB);
	verdict_fini(&r);
	script_free(s);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_pinned),
	    cmocka_unit_test(test_whole), cmocka_unit_test(test_of_a_leak),
	    cmocka_unit_test(test_unasked), cmocka_unit_test(test_reserved)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
