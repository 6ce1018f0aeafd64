/* Wrapping, cells and bars at any width, with names that would steer a terminal. */
#include "model/unit.h"

#include "report/style.h"

static void each_line(const char *text, unsigned most)
{
	while (*text) {
		size_t n = strcspn(text, "\n");
		char line[512];

		assert_true(n < sizeof(line));
		memcpy(line, text, n);
		line[n] = '\0';
		assert_true(term_columns(line) <= most);
		text += n + (text[n] == '\n');
	}
}

static void test_wrap(void **state)
{
	const char *text =
	    "one two three four five six seven eight nine ten eleven twelve thirteen "
	    "fourteen fifteen sixteen seventeen eighteen nineteen twenty";

	for (unsigned columns = 40; columns <= 200; columns += 7) {
		struct report_style st = {.columns = columns};
		struct str out = {0};

		style_item(&out, &st, "  1. ", 5, text);
		each_line(str_text(&out), columns);
		assert_non_null(strstr(str_text(&out), "twenty\n"));
		assert_int_equal(strncmp(str_text(&out), "  1. one two", 12), 0);
		str_free(&out);
	}
	(void)state;
}

static void test_hostile_names(void **state)
{
	struct report_style st = {.columns = 80, .unicode = true};
	struct str out = {0};

	style_wrap(&out, &st, 2, "evil\033[2J\007name \xff\xfe end");
	style_cell(&out, &st, "a\tb\033]0;title\007", 30, false);
	style_heading(&out, &st, "x\ry");
	for (const char *p = str_text(&out); *p; p++)
		assert_true((unsigned char)*p >= ' ' || *p == '\n');
	assert_null(strchr(str_text(&out), 0x7f));
	str_free(&out);
	(void)state;
}

static void test_cell(void **state)
{
	for (int unicode = 0; unicode < 2; unicode++) {
		struct report_style st = {.columns = 80, .unicode = unicode};
		struct str out = {0};

		style_cell(&out, &st, "a name that is too long", 10, false);
		assert_int_equal(term_columns(str_text(&out)), 10);
		str_clear(&out);
		style_cell(&out, &st, "short", 10, true);
		assert_string_equal(str_text(&out), "     short");
		str_clear(&out);
		style_cell(&out, &st,
		    "Gr\xc3\xb6\xc3\x9f"
		    "e",
		    10, false);
		assert_int_equal(term_columns(str_text(&out)), 10);
		str_free(&out);
	}
	(void)state;
}

static void test_bar(void **state)
{
	struct report_style plain = {.columns = 80}, fine = {.columns = 80, .unicode = true};
	struct str out = {0};

	style_bar(&out, &plain, 0.5, 20);
	assert_string_equal(str_text(&out), "##########");
	str_clear(&out);
	style_bar(&out, &plain, 7, 20);
	assert_int_equal(out.length, 20);
	str_clear(&out);
	style_bar(&out, &plain, -1, 20);
	style_bar(&out, &plain, 0.0 / 1, 20);
	assert_int_equal(out.length, 0);
	style_bar(&out, &fine, 0.51, 10);
	assert_in_range(term_columns(str_text(&out)), 5, 6);
	str_free(&out);
	(void)state;
}

static void test_where(void **state)
{
	char buffer[16];

	assert_string_equal(style_where(buffer, 16, "/a/b/c.py", 12, NULL), "c.py:12");
	assert_string_equal(style_where(buffer, 16, NULL, 0, "/lib/libx.so"), "libx.so");
	assert_string_equal(style_where(buffer, 16, NULL, 0, NULL), "");
	style_where(buffer, 16, "/a/a_very_long_file_name_indeed.py", 12, NULL);
	assert_true(strlen(buffer) < 16);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_wrap),
	    cmocka_unit_test(test_hostile_names),
	    cmocka_unit_test(test_cell),
	    cmocka_unit_test(test_bar),
	    cmocka_unit_test(test_where),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
