/* The text format: sections, keys, values over several lines, and mistakes with their lines. */
#include "../util/unit.h"

#include <errno.h>
#include <string.h>

#include "knowledge/sections.h"

static int parse(struct sections *s, struct arena *arena, const char *text, struct err *err)
{
	return sections_parse(s, "a.know", text, strlen(text), arena, err);
}

static void test_shape(void **state)
{
	static const char text[] = "# a comment\n"
				   "framework = x\n"
				   "\n"
				   "  # another\n"
				   "[role  kv-cache ]\n"
				   "python = a.py: f = g\n"
				   "text = one\n"
				   "  two\n"
				   "\tthree\n"
				   "pattern = one\n"
				   "  [ ]two\n"
				   "empty =\n"
				   "[last]\n"
				   "k = v";
	struct arena arena = {0};
	struct sections s;

	assert_int_equal(parse(&s, &arena, text, NULL), 0);
	assert_int_equal(s.list.count, 3);
	assert_string_equal(s.list.items[0].kind, "");
	assert_string_equal(s.list.items[0].lines.items[0].key, "framework");
	assert_string_equal(s.list.items[1].kind, "role");
	assert_string_equal(s.list.items[1].name, "kv-cache");
	assert_int_equal(s.list.items[1].line, 5);
	assert_int_equal(s.list.items[1].lines.count, 4);
	assert_string_equal(s.list.items[1].lines.items[0].value, "a.py: f = g");
	assert_string_equal(s.list.items[1].lines.items[1].value, "one two three");
	assert_int_equal(s.list.items[1].lines.items[1].line, 7);
	assert_string_equal(s.list.items[1].lines.items[2].value, "one[ ]two");
	assert_string_equal(s.list.items[1].lines.items[3].value, "");
	assert_string_equal(s.list.items[2].name, "");
	assert_string_equal(s.list.items[2].lines.items[0].value, "v");
	sections_free(&s);
	arena_free(&arena);
	(void)state;
}

static void mistake(const char *text, const char *words)
{
	struct arena arena = {0};
	struct sections s;
	struct err err = {""};

	assert_int_equal(parse(&s, &arena, text, &err), -EINVAL);
	if (!strstr(err.text, words))
		fail_msg("'%s' is not in '%s'", words, err.text);
	assert_int_equal(s.list.count, 0);
	arena_free(&arena);
}

static void test_mistakes(void **state)
{
	mistake("a = b\n\nno equals\n", "a.know:3: neither");
	mistake("[open\n", "a.know:1: a section's header");
	mistake("[]\n", "a.know:1: a section's header");
	mistake("= b\n", "a.know:1: no key");
	mistake("  goes on\n", "a.know:1: begins with a blank");
	mistake("a = b\n[s]\n  goes on\n", "a.know:3: begins with a blank");
	(void)state;
}

static void test_bytes(void **state)
{
	struct arena arena = {0};
	struct sections s;
	struct err err = {""};

	assert_int_equal(sections_parse(&s, "a.know", "a = \0b\n", 7, &arena, &err), -EINVAL);
	assert_non_null(strstr(err.text, "NUL"));
	assert_int_equal(parse(&s, &arena, "", &err), 0);
	assert_int_equal(s.list.count, 1);
	sections_free(&s);
	assert_int_equal(parse(&s, &arena, "a = b\r\nc = d\r\n", &err), 0);
	assert_string_equal(s.list.items[0].lines.items[0].value, "b");
	sections_free(&s);
	assert_int_equal(sections_read(&s, "/nonexistent/a.know", &arena, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/a.know"));
	arena_free(&arena);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_shape),
	    cmocka_unit_test(test_mistakes),
	    cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
