/* The searched directories: the user's own, and those that WHYOOM_KNOWLEDGE names instead. */
#include "../util/unit.h"

#include "files.h"
#include "knowledge/knowledge.h"
#include "util/text/note.h"

static char noted[1024];

static void on_note(void *arg, const char *text)
{
	(void)arg;
	snprintf(noted, sizeof(noted), "%s", text);
}

static int set_up(void **state)
{
	struct files *f = calloc(1, sizeof(*f));

	*state = f;
	noted[0] = '\0';
	unsetenv("WHYOOM_KNOWLEDGE");
	setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
	note_redirect(on_note, NULL);
	return f ? files_make(f) : -1;
}

static int tear_down(void **state)
{
	note_redirect(NULL, NULL);
	files_remove(*state);
	free(*state);
	return 0;
}

/* No files are shipped beside this test: that is reported, and is no error. */
static void test_nothing(void **state)
{
	struct knowledge *k = knowledge_open();
	const struct knowledge_message *const *messages;

	assert_non_null(k);
	assert_int_equal(knowledge_messages(k, &messages), 0);
	assert_non_null(strstr(noted, "no knowledge files"));
	knowledge_free(k);
	(void)state;
}

static void test_own(void **state)
{
	struct files *f = *state;
	char inner[128], config[80];
	struct knowledge *k;

	snprintf(config, sizeof(config), "%s/whyoom", f->dir);
	assert_int_equal(mkdir(config, 0700), 0);
	snprintf(inner, sizeof(inner), "%s/knowledge", config);
	assert_int_equal(mkdir(inner, 0700), 0);
	files_write(f, "whyoom/knowledge/mine.know", "framework = mine\n");
	setenv("XDG_CONFIG_HOME", f->dir, 1);
	k = knowledge_open();
	assert_non_null(knowledge_framework(k, "mine"));
	knowledge_free(k);
	/* A relative one is ignored, as its specification says. */
	setenv("XDG_CONFIG_HOME", "relative", 1);
	setenv("HOME", "/nonexistent", 1);
	k = knowledge_open();
	assert_null(knowledge_framework(k, "mine"));
	knowledge_free(k);
	unlink(f->path);
	rmdir(inner);
	rmdir(config);
}

static void test_named(void **state)
{
	struct files *f = *state;
	struct knowledge *k;
	char list[300];

	files_write(f, "one.know", "framework = one\n");
	files_write(f, "two.txt", "framework = two\n");
	snprintf(list, sizeof(list), "%s:%s", f->dir, f->path);
	setenv("WHYOOM_KNOWLEDGE", list, 1);
	k = knowledge_open();
	assert_non_null(knowledge_framework(k, "one"));
	assert_non_null(knowledge_framework(k, "two"));
	assert_string_equal(noted, "");
	knowledge_free(k);
	setenv("WHYOOM_KNOWLEDGE", "/nonexistent/x.know", 1);
	k = knowledge_open();
	assert_non_null(k);
	assert_non_null(strstr(noted, "/nonexistent/x.know"));
	knowledge_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_nothing, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_own, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_named, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
