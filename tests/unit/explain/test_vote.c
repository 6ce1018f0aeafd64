/* Claims for causes, and a traceback's claim. */
#include "../util/unit.h"

#include "explain/vote.h"
#include "known.h"

static void test_votes(void **state)
{
	struct votes v = {0};

	votes_add(&v, CAUSE_LEAK, 0.3);
	votes_add(&v, CAUSE_EXTERNAL, 0.5);
	votes_add(&v, CAUSE_LEAK, 0.6);
	votes_add(&v, CAUSE_EXTERNAL, 0.1);
	votes_sort(&v);
	assert_int_equal(v.count, 2);
	assert_int_equal(v.list[0].cause, CAUSE_LEAK);
	assert_true(v.list[0].confidence == 0.6);
	assert_true(v.list[1].confidence == 0.5);
	votes_combine(&v, CAUSE_EXTERNAL, 0.5);
	votes_sort(&v);
	assert_int_equal(v.list[0].cause, CAUSE_EXTERNAL);
	assert_true(v.list[0].confidence == 0.75);
	for (int i = 0; i < 40; i++)
		votes_add(&v, i % 2 ? CAUSE_CONCURRENCY : CAUSE_HEALTHY, 0.1);
	assert_int_equal(v.count, 4);
	(void)state;
}

static const char knowledge_text[] =
    "framework = x\n[role weights-load]\npython = load.py\n[role kv-cache]\npython = cache.py\n"
    "[message m]\nkind = failure\nneedle = FAILED\npattern = FAILED\nmeaning = It failed.\n"
    "cause = external 0.4\n";

static void first(const char *log, enum cause cause)
{
	struct knowledge *k = known_text(knowledge_text);
	struct explanation e = known_explain(k, log);
	struct votes v = {0};
	struct str words = {0};

	assert_int_equal(e.count, 1);
	vote_of_message(&e.messages[0], &v, &words);
	assert_int_equal(v.list[0].cause, cause);
	str_free(&words);
	explain_fini(&e);
	knowledge_free(k);
}

static void test_traceback(void **state)
{
	first("FAILED\n", CAUSE_EXTERNAL);
	first("  File \"/a/cache.py\", line 1, in put\nFAILED\n", CAUSE_PROMPT_GROWTH);
	/* A cache made while the model is loaded is part of the loading. */
	first("  File \"/a/load.py\", line 1, in load\n  File \"/a/cache.py\", line 1, in put\n"
	      "FAILED\n",
	    CAUSE_OVERSIZED_MODEL);
	(void)state;
}

/* The verdict names the function whose role decided. */
static void test_function(void **state)
{
	struct knowledge *k = known_text(knowledge_text);
	struct explanation e = known_explain(k, "  File \"/a/cache.py\", line 1, in put\nFAILED\n");

	assert_string_equal(vote_function_of(&e.messages[0].traceback, CAUSE_PROMPT_GROWTH), "put");
	assert_null(vote_function_of(&e.messages[0].traceback, CAUSE_OVERSIZED_MODEL));
	assert_non_null(strstr(e.verdict.summary, "By the traceback, it was asked for in put."));
	explain_fini(&e);
	knowledge_free(k);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_votes),
	    cmocka_unit_test(test_traceback),
	    cmocka_unit_test(test_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
