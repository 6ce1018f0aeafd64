/* A limit of ONNX Runtime's arena: the log's part, the recording's, and both together. */
#include "verdict/judged.h"

#include "../known.h"
#include "explain/join/join.h"

#define LOG                                                                                        \
	"[E:onnxruntime:, sequential_executor.cc:677 ExecuteKernel] Non-zero status code "         \
	"returned "                                                                                \
	"while running Softmax node. Status Message: bfc_arena.cc:360 void* "                      \
	"onnxruntime::BFCArena::AllocateRawInternal(size_t, bool, onnxruntime::Stream*) "          \
	"Available "                                                                               \
	"memory of 3145728 is smaller than requested bytes of 9000192\n"

static struct knowledge *knowledge;

static int set_up(void **state)
{
	knowledge = known_shipped();
	(void)state;
	return 0;
}

static int tear_down(void **state)
{
	knowledge_free(knowledge);
	(void)state;
	return 0;
}

static void region(struct script *s, uint64_t size)
{
	script_alloc(s, script_stack(s, "main;run;ort+0xe1@/ort.so;ort+0x12@/ort.so"), size);
	script_alloc(s, script_stack(s, "main;run;ort+0xe1@/ort.so;ort+0x13@/ort.so"), size / 32);
}

static void judge_with(struct script *s, const char *text, struct verdict_result *r)
{
	struct explanation e = known_explain(knowledge, text);
	struct err err = {""};
	bool limit;

	judge_script(s, NULL, r);
	assert_int_equal(r->verdict.cause, CAUSE_HEALTHY);
	assert_int_equal(join_arena(&e, r, &err), 0);
	join_verdict(&e, join_messages(&e, r, &r->arena), r);
	limit = r->failure.limit == LIMIT_ARENA;
	assert_int_equal(limit, r->ledger.limit == LIMIT_ARENA);
	assert_true(ledger_adds_up(&r->ledger));
	/* The words are the explanation's. */
	assert_int_equal(r->verdict.cause, e.count ? CAUSE_UNKNOWN : CAUSE_HEALTHY);
	explain_fini(&e);
}

static void end(struct script *s, struct verdict_result *r)
{
	verdict_fini(r);
	script_free(s);
}

static void test_limit(void **state)
{
	struct script *s = script_new();
	struct verdict_result r;

	for (uint64_t size = MiB; size <= 16 * MiB; size *= 2)
		region(s, size);
	script_exit(s, 1);
	judge_with(s, LOG, &r);
	assert_int_equal(r.failure.kind, FAILURE_HOST_ALLOC);
	assert_int_equal(r.failure.requested_bytes, 9000192);
	assert_int_equal(r.ledger.limit_bytes, 34 * MiB);
	assert_string_equal(r.ledger.at, "failure");
	assert_int_equal(row_of(&r.ledger, "arena segments"), 31 * MiB);
	assert_int_equal(row_of(&r.ledger, "free"), 3 * MiB);
	assert_int_equal(r.ledger.unaccounted, 0);
	end(s, &r);
	(void)state;
}

/* No recognised arena, or several: the report says so, and the host's ledger stays. */
static void test_not_told(void **state)
{
	for (int several = 0; several < 2; several++) {
		struct script *s = script_new();
		struct verdict_result r;
		size_t found = 0;

		script_alloc(s, script_stack(s, "main;table"), 30 * MiB);
		for (int i = 0; several && i < 2; i++) {
			region(s, MiB);
			region(s, 2 * MiB);
		}
		script_exit(s, 1);
		judge_with(s, LOG, &r);
		assert_int_equal(r.failure.kind, FAILURE_NONE);
		for (size_t i = 0; i < r.notes.count; i++)
			found += strstr(r.notes.list[i],
				     several ? "several arenas" : "no such arena") != NULL;
		assert_int_equal(found, 1);
		end(s, &r);
	}
	(void)state;
}

/* The log does not mention it. */
static void test_other_log(void **state)
{
	struct script *s = script_new();
	struct verdict_result r;

	region(s, 8 * MiB);
	script_exit(s, 0);
	judge_with(s, "all is well\n", &r);
	assert_int_equal(r.failure.kind, FAILURE_NONE);
	end(s, &r);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_limit),
	    cmocka_unit_test(test_not_told), cmocka_unit_test(test_other_log)};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
