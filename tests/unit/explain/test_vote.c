/* Claims for causes, and what a traceback says. */
#include "../util/unit.h"

#include "explain/vote.h"
#include "known.h"

static void test_votes(void **state)
{
	struct votes v = {0};

	votes_add(&v, "leak", 0.3);
	votes_add(&v, "external", 0.5);
	votes_add(&v, "leak", 0.6);
	votes_add(&v, "external", 0.1);
	votes_sort(&v);
	assert_int_equal(v.count, 2);
	assert_string_equal(v.list[0].cause, "leak");
	assert_true(v.list[0].confidence == 0.6);
	assert_true(v.list[1].confidence == 0.5);
	votes_combine(&v, "external", 0.5);
	votes_sort(&v);
	assert_string_equal(v.list[0].cause, "external");
	assert_true(v.list[0].confidence == 0.75);
	for (int i = 0; i < 40; i++)
		votes_add(&v, i % 2 ? "a" : "b", 0.1);
	assert_int_equal(v.count, 4);
	(void)state;
}

static const char knowledge_text[] =
    "framework = x\n[role weights-load]\npython = load.py\n[role kv-cache]\npython = cache.py\n"
    "[message m]\nkind = failure\nneedle = FAILED\npattern = FAILED\nmeaning = It failed.\n"
    "cause = external 0.4\n";

static void first(const char *log, const char *cause)
{
	struct knowledge *k = known_text(knowledge_text);
	struct explanation e = known_explain(k, log);
	struct votes v = {0};
	struct str words = {0};

	assert_int_equal(e.count, 1);
	vote_of_message(&e.messages[0], &v, &words);
	assert_string_equal(v.list[0].cause, cause);
	str_free(&words);
	explain_fini(&e);
	knowledge_free(k);
}

static void test_traceback(void **state)
{
	first("FAILED\n", "external");
	first("  File \"/a/cache.py\", line 1, in put\nFAILED\n", "prompt-growth");
	/* A cache made while the model is loaded is part of the loading. */
	first("  File \"/a/load.py\", line 1, in load\n  File \"/a/cache.py\", line 1, in put\n"
	      "FAILED\n",
	    "oversized-model");
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_votes),
	    cmocka_unit_test(test_traceback),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
