/* The meaning of sections, mistakes that name their line, files that override others; every
 * shipped file reads without a mistake. */
#include "../util/unit.h"

#include <errno.h>

#include "files.h"
#include "knowledge/knowledge.h"
#include "util/text/note.h"

#define HEAD "framework = x\nname = The X\npackage = x/\n"

static int set_up(void **state)
{
	struct files *f = calloc(1, sizeof(*f));

	*state = f;
	return f ? files_make(f) : -1;
}

static int tear_down(void **state)
{
	files_remove(*state);
	free(*state);
	return 0;
}

static struct knowledge *of(struct files *f, const char *text)
{
	struct knowledge *k = knowledge_new();
	struct err err = {""};

	if (knowledge_add(k, files_write(f, "a.know", text), &err))
		fail_msg("%s", err.text);
	return k;
}

static void test_all_sections(void **state)
{
	struct knowledge *k = of(*state,
	    HEAD "[role kv-cache]\npython = x/cache.py: Cache.put\nnative = x_put @ libx*\n"
		 "[fix prompt-growth]\nsetting = --len\nspace = device\ntext = Lower --len.\n"
		 "role = kv-cache\ntext = Only of the cache.\n"
		 "[message m]\nkind = failure\nspace = device\nneedle = one two\nneedle = three\n"
		 "pattern = one two (?<n_n>\\d)\ncause = leak 0.5, external 0.25\n"
		 "meaning = {n} of it.\nfix = Do this.\nfix = Do that.\n"
		 "overrules = --len\nfallback = yes\neach = rows: (?<x_n>\\d)\n");
	const struct knowledge_framework *x = knowledge_framework(k, "x");
	const struct knowledge_message *const *messages, *m;
	const struct knowledge_fix *fixes[4];

	assert_non_null(x);
	assert_string_equal(x->name, "The X");
	assert_int_equal(
	    knowledge_place(k, "Cache.put", "/y/x/cache.py", NULL).role, ROLE_KV_CACHE);
	assert_int_equal(knowledge_place(k, "x_put", NULL, "/y/libx.so").role, ROLE_KV_CACHE);
	assert_ptr_equal(knowledge_place(k, "f", "/y/x/other.py", NULL).framework, x);
	assert_int_equal(knowledge_fixes(k, x, CAUSE_PROMPT_GROWTH, ROLE_NONE, fixes, 4), 1);
	assert_string_equal(fixes[0]->setting, "--len");
	assert_true(knowledge_fix_applies(fixes[0], "device"));
	assert_true(knowledge_fix_applies(fixes[0], ""));
	assert_false(knowledge_fix_applies(fixes[0], "host"));
	assert_int_equal(knowledge_fixes(k, x, CAUSE_PROMPT_GROWTH, ROLE_KV_CACHE, fixes, 4), 2);
	assert_string_equal(fixes[0]->text, "Only of the cache.");
	assert_true(knowledge_fix_applies(fixes[0], "host"));
	assert_int_equal(knowledge_fixes(k, x, CAUSE_PROMPT_GROWTH, ROLE_KV_CACHE, fixes, 1), 1);
	assert_int_equal(knowledge_fixes(k, x, CAUSE_LEAK, ROLE_NONE, fixes, 4), 0);
	assert_int_equal(knowledge_messages(k, &messages), 1);
	m = messages[0];
	assert_string_equal(m->from, "The X");
	assert_int_equal(m->kind, MESSAGE_FAILURE);
	assert_int_equal(m->needle_count, 2);
	assert_string_equal(m->needles[1], "three");
	assert_int_equal(m->cause_count, 2);
	assert_int_equal(m->causes[1].cause, CAUSE_EXTERNAL);
	assert_true(m->causes[0].confidence == 0.5);
	assert_int_equal(m->fix_count, 2);
	assert_string_equal(m->fixes[0], "Do this.");
	assert_int_equal(m->overrule_count, 1);
	assert_string_equal(m->overrules[0], "--len");
	assert_true(m->fallback);
	assert_string_equal(m->each_name, "rows");
	assert_string_equal(m->each, "(?<x_n>\\d)");
	knowledge_free(k);
}

static void mistake(struct files *f, const char *text, const char *words)
{
	struct knowledge *k = knowledge_new();
	const struct knowledge_message *const *messages;
	struct err err = {""};

	assert_int_equal(knowledge_add(k, files_write(f, "bad.know", text), &err), -EINVAL);
	if (!strstr(err.text, words) || !strstr(err.text, "bad.know:"))
		fail_msg("'%s' is not in '%s'", words, err.text);
	/* A file with a mistake leaves nothing. */
	assert_null(knowledge_framework(k, "x"));
	assert_int_equal(knowledge_messages(k, &messages), 0);
	assert_int_equal(knowledge_place(k, "f", "/x/a.py", NULL).role, ROLE_NONE);
	assert_null(knowledge_place(k, "f", "/x/a.py", NULL).framework);
	knowledge_free(k);
}

#define GOOD HEAD "[role history]\npython = x/a.py: f\n"
#define MESSAGE(lines) HEAD "[message m]\n" lines

static void test_mistakes(void **state)
{
	struct files *f = *state;

	mistake(f, "name = X\n", ":1: the file begins without");
	mistake(f, HEAD "colour = red\n", ":4: there is no such key here: 'colour'");
	mistake(f, GOOD "[rule x]\n", ":6: there is no section 'rule'");
	mistake(f, GOOD "[role chef]\n", ":6: there is no role 'chef'");
	mistake(f, GOOD "[role history]\npython = :\n", ":7: no pattern of a frame");
	mistake(f, GOOD "[fix gremlins]\ntext = a\n", ":6: there is no cause 'gremlins'");
	mistake(f, GOOD "[fix leak]\nsetting = a\n", ":6: a fix without");
	mistake(f, GOOD "[fix leak]\nspace = moon\ntext = a\n", ":7: there is no space 'moon'");
	mistake(f, GOOD "[fix leak]\nwhere = x\ntext = a\n", ":7: there is no condition 'x'");
	mistake(
	    f, MESSAGE("kind = failure\nneedle = abcd\npattern = abcd\n"), "meaning is missing");
	mistake(f, MESSAGE("kind = drama\n"), ":5: there is no kind 'drama'");
	mistake(f, MESSAGE("needle = abc\n"), ":5: too short");
	mistake(f, MESSAGE("fallback = no\n"), ":5: 'fallback' is yes");
	mistake(f, MESSAGE("cause = leak\n"), ":5: no confidence");
	mistake(f, MESSAGE("cause = leak 1.5\n"), ":5: no confidence");
	mistake(f, MESSAGE("cause = leak 0.2, external 0.4\n"), ":5: the likeliest");
	mistake(f, MESSAGE("each = rows\n"), ":5: 'each' is NAME");
	mistake(f,
	    MESSAGE("kind = failure\nneedle = abcd\npattern = a\nmeaning = b\nspace = moon\n"),
	    "no space 'moon'");
	mistake(f,
	    MESSAGE("kind = hint\nneedle = abcd\npattern = a\nmeaning = b\n"
		    "[message m]\nkind = hint\nneedle = abcd\npattern = a\nmeaning = b\n"),
	    "two messages 'm'");
}

static unsigned notes;

static void on_note(void *arg, const char *text)
{
	(void)arg;
	(void)text;
	notes++;
}

static void test_directory(void **state)
{
	struct files *f = *state;
	struct knowledge *k = knowledge_new();
	const struct knowledge_fix *fixes[2];

	files_write(
	    f, "a.know", HEAD "[role history]\npython = a.py: f\n[fix leak]\ntext = first\n");
	files_write(f, "b.know",
	    "framework = x\n[role embedding]\npython = a.py: f\n"
	    "[fix leak]\ntext = second\n");
	files_write(f, "c.know", "nonsense\n");
	files_write(f, "d.txt", "not knowledge\n");
	notes = 0;
	note_redirect(on_note, NULL);
	assert_int_equal(knowledge_add_dir(k, f->dir), 0);
	assert_int_equal(knowledge_add_dir(k, "/nonexistent"), -ENOENT);
	note_redirect(NULL, NULL);
	assert_int_equal(notes, 1);
	/* Later files come first. */
	assert_int_equal(knowledge_place(k, "f", "/x/a.py", NULL).role, ROLE_EMBEDDING);
	assert_int_equal(
	    knowledge_fixes(k, knowledge_framework(k, "x"), CAUSE_LEAK, ROLE_NONE, fixes, 2), 2);
	assert_string_equal(fixes[0]->text, "second");
	knowledge_free(k);
}

static void test_names(void **state)
{
	for (int role = 1; role < ROLE_COUNT; role++) {
		struct knowledge *k;
		char text[128];

		snprintf(text, sizeof(text), "framework = x\n[role %s]\npython = a.py\n",
		    role_name((enum role)role));
		k = of(*state, text);
		assert_int_equal(knowledge_place(k, "f", "/x/a.py", NULL).role, role);
		knowledge_free(k);
	}
	assert_string_equal(message_kind_name(MESSAGE_NOT_MEMORY), "not-memory");
}

static void test_shipped(void **state)
{
	static const char *const frameworks[] = {"pytorch", "vllm", "sglang", "tgi", "llamacpp",
	    "ollama", "onnxruntime", "tensorrt-llm", "numpy", "kernel"};
	struct knowledge *k = knowledge_new();
	const struct knowledge_message *const *messages;

	notes = 0;
	note_redirect(on_note, NULL);
	assert_int_equal(knowledge_add_dir(k, getenv("WHYOOM_TEST_KNOWLEDGE")), 0);
	note_redirect(NULL, NULL);
	assert_int_equal(notes, 0);
	for (size_t i = 0; i < sizeof(frameworks) / sizeof(*frameworks); i++)
		assert_non_null(knowledge_framework(k, frameworks[i]));
	assert_true(knowledge_messages(k, &messages) > 100);
	knowledge_free(k);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_all_sections, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_mistakes, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_directory, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_names, set_up, tear_down),
	    cmocka_unit_test(test_shipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
