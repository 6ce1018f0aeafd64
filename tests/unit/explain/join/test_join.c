/* A log beside a recording: the failure that its messages name, and the verdict that counts. */
#include "../../util/unit.h"

#include "../known.h"
#include "explain/join/join.h"
#include "verdict/device/device.h"

#define MIB (1ull << 20)

static const char text_of[] =
    "framework = kernel\nname = kernel\n"
    "[message kill]\nkind = failure\nneedle = Killed\n"
    "pattern = Killed (?<pid_n>\\d{1,9}) \\((?<comm>\\w{1,15})\\)\nmeaning = Dead.\n"
    "[message big]\nkind = failure\nneedle = REFUSED\npattern = REFUSED "
    "(?<requested_bytes>{SIZE})\n"
    "meaning = It was refused.\ncause = leak 0.7\nfix = Stop it.\n"
    "[message again]\nkind = retry\nneedle = AGAIN\npattern = AGAIN (?<requested_bytes>{SIZE})\n"
    "meaning = Once more.\n";

static struct knowledge *knowledge;
static struct arena arena;

static int set_up(void **state)
{
	knowledge = known_text(text_of);
	(void)state;
	return 0;
}

static int tear_down(void **state)
{
	knowledge_free(knowledge);
	arena_free(&arena);
	(void)state;
	return 0;
}

static void test_victims(void **state)
{
	struct explanation e =
	    known_explain(knowledge, "Killed 77 (python)\nREFUSED 5 MiB\nKilled 78 (tool)\n");
	size_t count;
	const struct log_victim *v = join_victims(&e, &arena, &count);

	assert_int_equal(count, 2);
	assert_int_equal(v[0].pid, 77);
	assert_string_equal(v[0].comm, "python");
	assert_int_equal(v[1].pid, 78);
	explain_fini(&e);
}

/* By size, to the printed precision; a block, or the segment for it. */
static void test_messages(void **state)
{
	struct explanation e = known_explain(
	    knowledge, "REFUSED 2.47 GiB\nREFUSED 20.00 MiB\nREFUSED 2.50 GiB\nREFUSED 300 KiB\n");
	struct recovered before = {.size = 300 * 1024 + 512};
	struct device_report device = {.segment = 20 * MIB};
	struct verdict_result r = {
	    .failure = {.kind = FAILURE_CUDA_OOM, .requested_bytes = 2530 * MIB},
	    .devices.first = &device,
	    .recoveries.list = &before,
	    .recoveries.count = 1};
	const enum join *of = join_messages(&e, &r, &arena);

	assert_int_equal(of[0], JOIN_FAILURE); /* 2.4707 GiB */
	assert_int_equal(of[1], JOIN_FAILURE);
	assert_int_equal(of[2], JOIN_NOTHING);
	assert_int_equal(of[3], JOIN_RECOVERED);
	explain_fini(&e);
}

static void test_kill(void **state)
{
	struct explanation e = known_explain(knowledge, "Killed 77 (python)\n");
	struct verdict_result r = {.failure.kind = FAILURE_OOM_KILL};

	assert_int_equal(join_messages(&e, &r, &arena)[0], JOIN_FAILURE);
	r.failure.kind = FAILURE_HOST_ALLOC;
	assert_int_equal(join_messages(&e, &r, &arena)[0], JOIN_NOTHING);
	explain_fini(&e);
}

/* Whether the log's verdict counts, if the recording has that cause and failure. */
static bool is_logs(const char *log, enum cause cause, enum failure_kind kind)
{
	struct explanation e = known_explain(knowledge, log);
	struct recovered before = {.size = 9 * MIB};
	struct verdict_result r = {.failure = {.kind = kind, .requested_bytes = 5 * MIB},
	    .verdict = {.cause = cause, .next = "Once more."},
	    .recoveries.list = &before,
	    .recoveries.count = 1};
	const enum join *of = join_messages(&e, &r, &arena);
	bool is = join_verdict(&e, of, &r);

	if (is) {
		assert_int_equal(r.verdict.cause, e.verdict.cause);
		assert_true(r.verdict.confidence == e.verdict.confidence);
		assert_null(r.verdict.next);
		assert_true(r.verdict.fix_count > 0);
		assert_int_equal(r.notes.count, 1);
	} else {
		assert_int_equal(r.verdict.cause, cause);
		assert_int_equal(r.notes.count, 0);
	}
	explain_fini(&e);
	return is;
}

static void test_verdict(void **state)
{
	/* The recording has none: nothing ran out in it, or it cannot tell. */
	assert_true(is_logs("REFUSED 5 MiB\n", CAUSE_HEALTHY, FAILURE_NONE));
	assert_true(is_logs("REFUSED 5 MiB\n", CAUSE_UNKNOWN, FAILURE_NONE));
	assert_true(is_logs("REFUSED 5 MiB\n", CAUSE_UNKNOWN, FAILURE_HOST_ALLOC));
	/* It has. */
	assert_false(is_logs("REFUSED 5 MiB\n", CAUSE_EXTERNAL, FAILURE_HOST_ALLOC));
	/* The log names no failure, one that cannot decide, or one that the program survived. */
	assert_false(is_logs("fine\n", CAUSE_UNKNOWN, FAILURE_HOST_ALLOC));
	assert_false(is_logs("AGAIN 5 MiB\n", CAUSE_HEALTHY, FAILURE_NONE));
	assert_false(is_logs("Killed 1 (a)\n", CAUSE_HEALTHY, FAILURE_NONE));
	assert_false(is_logs("REFUSED 9 MiB\n", CAUSE_HEALTHY, FAILURE_NONE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_victims),
	    cmocka_unit_test(test_messages),
	    cmocka_unit_test(test_kill),
	    cmocka_unit_test(test_verdict),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
