/* One verdict from several messages. */
#include "../util/unit.h"

#include "known.h"

static const char text_of[] =
    "framework = x\nname = X\n"
    "[fix external]\nsetting = --share\ntext = Lower --share.\n"
    "[fix concurrency]\ntext = Fewer.\n"
    "[message either]\nkind = failure\nneedle = EITHER\npattern = EITHER\nmeaning = It is full.\n"
    "cause = concurrency 0.4, external 0.35\n"
    "[message other]\nkind = failure\nneedle = OTHER\npattern = OTHER\nmeaning = Some program.\n"
    "fallback = yes\n"
    "[message leak]\nkind = failure\nneedle = LEAK\npattern = LEAK\nmeaning = It leaks.\n"
    "cause = leak 0.7\nfix = Stop it.\n"
    "[message ext]\nkind = failure\nneedle = EXTERNAL\npattern = EXTERNAL\nmeaning = Others.\n"
    "cause = external 0.6\n"
    "[message weak]\nkind = failure\nneedle = WEAK\npattern = WEAK\nmeaning = It is full.\n"
    "cause = leak 0.3, external 0.25\n"
    "[message warn]\nkind = warning\nneedle = WARN\npattern = WARN\nmeaning = Soon.\n"
    "cause = external 0.5\n"
    "[message soft]\nkind = retry\nneedle = SOFT\npattern = SOFT\nmeaning = Again.\n"
    "cause = external 0.5\n"
    "[message after]\nkind = consequence\nneedle = AFTER\npattern = AFTER\nmeaning = Dead.\n"
    "[message window]\nkind = not-memory\nneedle = WINDOW\npattern = WINDOW\nmeaning = Long.\n"
    "[message hint]\nkind = hint\nneedle = HINT\npattern = HINT\nmeaning = Perhaps.\n"
    "cause = external 0.9\n"
    "[message full]\nkind = failure\nneedle = FULL\npattern = FULL\nmeaning = It is full.\n"
    "fix = Empty it.\n"
    "[message size]\nkind = context\nneedle = SIZE\npattern = SIZE\nmeaning = A size.\n"
    "[message quota]\nkind = not-memory\nneedle = QUOTA\npattern = QUOTA\nmeaning = A quota.\n"
    "fix = Ask for more.\n"
    "[message large]\nkind = failure\ngroup = g\nneedle = LARGE\n"
    "pattern = LARGE (?<requested_MiB>\\d+)\nmeaning = One of {requested_bytes}.\n"
    "[message then]\nkind = failure\ngroup = g\nneedle = THEN\npattern = THEN\nmeaning = So it "
    "ended.\n"
    "[message pool]\nkind = context\ngroup = g\nneedle = POOL\n"
    "pattern = POOL (?<in_use_MiB>\\d+) of (?<limit_MiB>\\d+)\nmeaning = A pool.\n"
    "[message kill]\nkind = failure\ngroup = k\nneedle = KILL\n"
    "pattern = KILL (?<anon_MiB>\\d+) in a (?<scope>\\w+)\nmeaning = Killed.\n"
    "[message usage]\nkind = context\ngroup = k\nneedle = USAGE\n"
    "pattern = USAGE (?<usage_MiB>\\d+) of (?<limit_MiB>\\d+)\nmeaning = A limit.\n";

static struct knowledge *knowledge;

static int set_up(void **state)
{
	knowledge = known_text(text_of);
	(void)state;
	return 0;
}

static int tear_down(void **state)
{
	knowledge_free(knowledge);
	(void)state;
	return 0;
}

static struct explanation verdict(const char *log, enum cause cause)
{
	struct explanation e = known_explain(knowledge, log);

	assert_int_equal(e.verdict.cause, cause);
	assert_true(e.verdict.confidence >= 0 && e.verdict.confidence <= 0.95);
	assert_true(strlen(e.verdict.summary) > 3);
	return e;
}

static void check(const char *log, enum cause cause)
{
	struct explanation e = verdict(log, cause);

	explain_fini(&e);
}

static void test_decided(void **state)
{
	struct explanation e = verdict("AFTER\nLEAK\n", CAUSE_LEAK);

	assert_true(e.verdict.confidence == 0.7);
	assert_string_equal(e.verdict.summary, "It leaks.");
	assert_int_equal(e.verdict.message, 1);
	assert_int_equal(e.verdict.fix_count, 1);
	assert_string_equal(e.verdict.fixes[0].text, "Stop it.");
	assert_null(e.verdict.next);
	explain_fini(&e);
	e = verdict("EXTERNAL\n", CAUSE_EXTERNAL);
	assert_string_equal(e.verdict.fixes[0].setting, "--share");
	assert_string_equal(e.verdict.fixes[0].for_, "X");
	explain_fini(&e);
	(void)state;
}

/* The first failure counts most, its repetitions once, an earlier warning a little. */
static void test_weights(void **state)
{
	struct explanation e;

	check("2026-05-01 10:00:00 LEAK\n2026-05-01 12:00:00 EXTERNAL\n", CAUSE_LEAK);
	check("2026-05-01 10:00:00 EXTERNAL\n2026-05-01 12:00:00 LEAK\n", CAUSE_EXTERNAL);
	e = verdict("EXTERNAL\n x EXTERNAL\n", CAUSE_EXTERNAL);
	assert_true(e.verdict.confidence == 0.6);
	explain_fini(&e);
	e = verdict("WARN\nEXTERNAL\n", CAUSE_EXTERNAL);
	assert_true(e.verdict.confidence > 0.7);
	explain_fini(&e);
	e = verdict("SOFT\nEXTERNAL\n", CAUSE_EXTERNAL);
	assert_true(e.verdict.confidence == 0.6);
	explain_fini(&e);
	(void)state;
}

static void test_undecided(void **state)
{
	struct explanation e = verdict("WEAK\n", CAUSE_UNKNOWN);

	assert_true(e.verdict.confidence == 0);
	assert_int_equal(e.verdict.runner_up, CAUSE_LEAK);
	assert_non_null(strstr(e.verdict.summary, "leak or external"));
	assert_non_null(e.verdict.next);
	assert_int_equal(e.messages[0].cause, CAUSE_UNKNOWN);
	explain_fini(&e);
	(void)state;
}

static void test_no_failure(void **state)
{
	check("WINDOW\n", CAUSE_HEALTHY);
	check("SOFT\n", CAUSE_HEALTHY);
	check("WINDOW\nHINT\n", CAUSE_UNKNOWN);
	check("HINT\n", CAUSE_UNKNOWN);
	check("AFTER\n", CAUSE_UNKNOWN);
	check("SOFT\nAFTER\n", CAUSE_UNKNOWN);
	check("nothing\n", CAUSE_UNKNOWN);
	check("", CAUSE_UNKNOWN);
	/* Other failures stay out of a verdict about memory. */
	check("WINDOW\nLEAK\n", CAUSE_LEAK);
	(void)state;
}

static void says(const char *log, const char *words, const char *fix)
{
	struct explanation e = known_explain(knowledge, log);

	if (!strstr(e.verdict.summary, words))
		fail_msg("'%s' is not in '%s'", words, e.verdict.summary);
	assert_int_equal(e.verdict.fix_count, fix != NULL);
	if (fix)
		assert_string_equal(e.verdict.fixes[0].text, fix);
	explain_fini(&e);
}

/* What a message advises by itself is shown without a cause, too. */
static void test_own_advice(void **state)
{
	says("FULL\n", "It is full. The text alone does not decide", "Empty it.");
	says("QUOTA\n", "No memory ran out. A quota.", "Ask for more.");
	(void)state;
}

/* Without a failure, the message that says most is repeated. */
static void test_repeated(void **state)
{
	static const char likely[] = "If it is external: Lower --share.";

	says("SOFT\n", "no failure: the program went on. Again.",
	    "Where it happens often: Lower --share.");
	says("SIZE\nHINT\n", "for certain that memory ran out. Perhaps.", NULL);
	says("SIZE\nWARN\n", "no message says that it failed. Soon. Should it fail, external is",
	    "Where it happens often: Lower --share.");
	says("SIZE\n", "No message says what failed. A size.", NULL);
	says("SOFT\nAFTER\n", "memory ran out. Dead. Before that: Again.", NULL);
	says("QUOTA\nAFTER\n", "memory ran out. Dead. Before that: A quota.", "Ask for more.");
	says("SOFT\nWEAK\n", "It is full. Before that: Again. The text alone", likely);
	says("WEAK\nSOFT\n", "It is full. The text alone", likely);
	says("2026-05-01 10:00:00 SOFT\n2026-05-01 12:00:00 WEAK\n", "It is full. The text alone",
	    likely);
	check("WARN\nQUOTA\n", CAUSE_UNKNOWN);
	(void)state;
}

/* Of one event, the message with a size says more than the last one. */
static void test_most_telling(void **state)
{
	says("LARGE 10\nTHEN\n", "One of 10.0 MiB.", NULL);
	(void)state;
}

/* A request is not to blame for a pool that was full before. */
static void test_pool(void **state)
{
	check("LARGE 2000\n", CAUSE_OVERSIZED_INTERMEDIATE);
	check("POOL 9000 of 9000\nLARGE 2000\n", CAUSE_OVERSIZED_INTERMEDIATE);
	says("POOL 64000 of 64000\nLARGE 2000\n", "had 62.5 GiB of its 62.5 GiB in use", NULL);
	says("LARGE 2000\nPOOL 64000 of 64000\n", "had 62.5 GiB of its 62.5 GiB in use", NULL);
	check("POOL 1000 of 64000\nLARGE 2000\n", CAUSE_OVERSIZED_INTERMEDIATE);
	(void)state;
}

/* The limit that the kernel prints above a kill belongs to it. */
static void test_limit_of_a_kill(void **state)
{
	says("USAGE 100 of 100\nUSAGE 200 of 256\nKILL 190 in a cgroup\n",
	    "as its cgroup (container, service) was at its limit. The cgroup held 200 MiB of its "
	    "limit of 256 MiB.",
	    NULL);
	says("USAGE 200 of 256\nKILL 190 in a machine\n",
	    "as the machine's memory was full. The text", NULL);
	(void)state;
}

/* What is not known counts where nothing known says how it went. */
static void test_fallback(void **state)
{
	static const char *const settled[] = {"FULL\nOTHER\n", "OTHER\nWINDOW\n", "OTHER\nSOFT\n"};
	struct explanation e = verdict("SIZE\nOTHER\nHINT\n", CAUSE_UNKNOWN);

	assert_int_equal(e.count, 3);
	assert_int_equal(e.verdict.message, 1);
	explain_fini(&e);
	for (size_t i = 0; i < sizeof(settled) / sizeof(*settled); i++) {
		e = known_explain(knowledge, settled[i]);
		assert_int_equal(e.count, 1);
		assert_string_not_equal(e.messages[0].known->name, "other");
		explain_fini(&e);
	}
	(void)state;
}

/* An undecided verdict advises for both causes that it names, and says for which. */
static void test_likely_fixes(void **state)
{
	struct explanation e = verdict("EITHER\n", CAUSE_UNKNOWN);

	assert_int_equal(e.verdict.fix_count, 2);
	assert_string_equal(e.verdict.fixes[0].text, "If it is concurrency: Fewer.");
	assert_string_equal(e.verdict.fixes[1].text, "If it is external: Lower --share.");
	assert_string_equal(e.verdict.fixes[1].setting, "--share");
	explain_fini(&e);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_decided),
	    cmocka_unit_test(test_weights),
	    cmocka_unit_test(test_undecided),
	    cmocka_unit_test(test_no_failure),
	    cmocka_unit_test(test_own_advice),
	    cmocka_unit_test(test_repeated),
	    cmocka_unit_test(test_most_telling),
	    cmocka_unit_test(test_pool),
	    cmocka_unit_test(test_limit_of_a_kill),
	    cmocka_unit_test(test_fallback),
	    cmocka_unit_test(test_likely_fixes),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
