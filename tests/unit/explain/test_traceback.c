/* The frames before a message, with a logger's text before each line, and their roles. */
#include "../util/unit.h"

#include "known.h"

static const char knowledge_text[] = "framework = x\npackage = x/\n"
				     "[role weights-load]\npython = x/loader.py: Loader.load\n"
				     "[role kv-cache]\npython = x/cache.py\n";

static void read_frames(
    const struct knowledge *k, const char *text, struct traceback *t, struct arena *a)
{
	assert_int_equal(traceback_read(t, text, strlen(text), k, a), 0);
}

static void test_roles(void **state)
{
	struct knowledge *k = known_text(knowledge_text);
	struct arena arena = {0};
	struct traceback t;

	read_frames(k,
	    "Traceback (most recent call last):\n"
	    "  File \"/app/serve.py\", line 7, in <module>\n"
	    "    main()\n"
	    "  File \"/v/site-packages/x/loader.py\", line 31, in load\n"
	    "(Worker pid=1) ERROR 05-01 12:00:00 [a.py:1]   File \"/v/site-packages/x/cache.py\", "
	    "line 5, in put\n"
	    "  File \"/v/site-packages/torch/tensor.py\", line 9, in zeros\n",
	    &t, &arena);
	assert_int_equal(t.frames, 4);
	assert_string_equal(t.roles[ROLE_WEIGHTS_LOAD].function, "load");
	assert_int_equal(t.roles[ROLE_WEIGHTS_LOAD].line, 31);
	assert_string_equal(t.roles[ROLE_KV_CACHE].function, "put");
	assert_string_equal(t.framework.function, "put");
	assert_string_equal(t.own.function, "<module>");
	assert_string_equal(t.own.file, "/app/serve.py");
	assert_null(t.roles[ROLE_NONE].function);
	arena_free(&arena);
	knowledge_free(k);
	(void)state;
}

/* Only the last of several counts. */
static void test_last(void **state)
{
	struct knowledge *k = known_text(knowledge_text);
	struct arena arena = {0};
	struct traceback t;

	read_frames(k,
	    "Traceback (most recent call last):\n"
	    "  File \"/x/loader.py\", line 1, in load\n"
	    "During handling of the above exception, another exception occurred:\n"
	    "Traceback (most recent call last):\n"
	    "  File \"/mine.py\", line 1, in f\n",
	    &t, &arena);
	assert_int_equal(t.frames, 1);
	assert_null(t.roles[ROLE_WEIGHTS_LOAD].function);
	arena_free(&arena);
	knowledge_free(k);
	(void)state;
}

static void test_damaged(void **state)
{
	struct knowledge *k = known_text(knowledge_text);
	struct arena arena = {0};
	struct traceback t;
	const char *texts[] = {"File \"", "File \"a", "File \"a\", line ", "File \"a\", line 12",
	    "File \"a\", line 12, in ", "File \"a\nb\", line 1, in c", "File \"a\", line x, in c"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		read_frames(k, texts[i], &t, &arena);
		assert_true(t.frames <= 1);
	}
	read_frames(k, "", &t, &arena);
	assert_int_equal(t.frames, 0);
	arena_free(&arena);
	knowledge_free(k);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_roles),
	    cmocka_unit_test(test_last),
	    cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
