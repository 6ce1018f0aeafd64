/* Each cause has its advice, which names the blamed function; a framework's own comes first. */
#include "model/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "verdict/fixes.h"

static void test_fixes(void **state)
{
	static struct verdict_result r;
	struct fix fixes[FIXES_MAX];
	size_t count;

	r.verdict.blame.function = "remember";
	for (const char *const *cause =
		 (const char *const[]){"prompt-growth", "leak", "oversized-intermediate", NULL};
	     *cause; cause++) {
		fixes_for(&r, *cause, fixes, &count, &r.arena);
		assert_true(count >= 2);
		assert_non_null(strstr(fixes[0].text, "remember"));
		assert_string_equal(fixes[0].for_, "any");
	}
	fixes_for(&r, "healthy", fixes, &count, &r.arena);
	assert_int_equal(count, 0);
	arena_free(&r.arena);
	(void)state;
}

/* A framework's own, by the frames of the blamed stack. */
static void test_frameworks(void **state)
{
	static const struct symbol symbols[] = {
	    {.function = "main", .file = "/app/main.py", .python = true},
	    {.function = "keep",
		.file = "/usr/lib/python3/site-packages/acme/store.py",
		.python = true}};
	struct verdict_result r = {.verdict = {.blame = {.stack = {symbols, 2}}}};
	struct fix fixes[FIXES_MAX];
	char path[] = "/tmp/whyoom-fixes-XXXXXX";
	struct err err = {""};
	size_t count;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_true(dprintf(fd, "framework = acme\nname = Acme\npackage = acme/\n\n[role history]\n"
				"python = acme/store.py: keep\n\n[fix leak]\n"
				"text = Give the store a bound.\n") > 0);
	close(fd);
	r.knowledge = knowledge_new();
	assert_int_equal(knowledge_add(r.knowledge, path, &err), 0);
	fixes_for(&r, "leak", fixes, &count, &r.arena);
	assert_string_equal(fixes[0].for_, "Acme");
	assert_string_equal(fixes[0].text, "Give the store a bound.");
	assert_string_equal(fixes[1].for_, "any");
	fixes_for(&r, "prompt-growth", fixes, &count, &r.arena);
	assert_string_equal(fixes[0].for_, "any");
	unlink(path);
	knowledge_free(r.knowledge);
	arena_free(&r.arena);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_fixes), cmocka_unit_test(test_frameworks)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
