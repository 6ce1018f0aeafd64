/* Wrapping, cells and bars at any width, with names that try to steer a terminal. */
#include "model/unit.h"

#include "report/text/style.h"

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

		style_item(&out, &st, "  1. ", 5, "%s", text);
		each_line(str_text(&out), columns);
		assert_non_null(strstr(str_text(&out), "twenty\n"));
		assert_int_equal(strncmp(str_text(&out), "  1. one two", 12), 0);
		str_free(&out);
	}
	(void)state;
}

/* A number and its unit on one line; a word that is longer than a line broken. */
static void test_wrap_words(void **state)
{
	const char *text =
	    "from 15.3 MiB to 121 MiB, (100 % of 42 s), after 2 min 03 s: "
	    "std::__cxx11::basic_string<char,std::char_traits<char>,std::allocator<char>"
	    ">::_M_append MiB end";

	for (unsigned columns = 40; columns <= 120; columns++) {
		struct report_style st = {.columns = columns};
		struct str out = {0};

		style_item(&out, &st, "  - ", 4, "%s", text);
		each_line(str_text(&out), columns);
		assert_null(strstr(str_text(&out), "\n    MiB,"));
		assert_null(strstr(str_text(&out), "15.3\n"));
		assert_null(strstr(str_text(&out), "(100\n"));
		assert_null(strstr(str_text(&out), "42\n"));
		assert_null(strstr(str_text(&out), "03\n"));
		assert_non_null(strstr(str_text(&out), "end\n"));
		str_free(&out);
	}
	(void)state;
}

static void test_callsite(void **state)
{
	for (int unicode = 0; unicode < 2; unicode++) {
		struct report_style st = {.columns = 80, .unicode = unicode};
		struct str out = {0};

		style_place(&out, &st, "short.py:31", 20);
		assert_string_equal(str_text(&out), "short.py:31");
		str_clear(&out);
		style_place(&out, &st, "libc_start_call_main.h:1058", 16);
		assert_int_equal(term_columns(str_text(&out)), 16);
		assert_non_null(strstr(str_text(&out), ":1058"));
		str_clear(&out);
		style_place(&out, &st, "a_library_without_lines.so", 12);
		assert_int_equal(term_columns(str_text(&out)), 12);
		str_clear(&out);
		style_place(&out, &st, "odd:name_without_a_line_number", 12);
		assert_int_equal(term_columns(str_text(&out)), 12);
		str_free(&out);
	}
	(void)state;
}

static void test_wide_characters(void **state)
{
	struct report_style st = {.columns = 80, .unicode = true};
	struct str out = {0};

	style_cell(&out, &st,
	    "\xe5\x86\x85\xe5\xad\x98\xe5\x86\x85\xe5\xad\x98\xe5\x86\x85\xe5\xad\x98", 8, false);
	assert_int_equal(term_columns(str_text(&out)), 8);
	str_clear(&out);
	str_puts(&out, "cell   ");
	style_end(&out);
	assert_string_equal(str_text(&out), "cell\n");
	str_free(&out);
	(void)state;
}

static void test_heading_wraps(void **state)
{
	struct report_style st = {.columns = 40, .colour = true};
	struct str out = {0};

	style_heading(&out, &st, "Where 128 MiB went (cgroup memory.max) at the high-water mark");
	assert_int_equal(strncmp(str_text(&out), "\n\033[1mWhere", 10), 0);
	assert_string_equal(str_text(&out) + out.length - 5, "\033[0m\n");
	assert_true(out.length > 70);
	str_free(&out);
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
	    cmocka_unit_test(test_wrap_words),
	    cmocka_unit_test(test_callsite),
	    cmocka_unit_test(test_wide_characters),
	    cmocka_unit_test(test_heading_wraps),
	    cmocka_unit_test(test_hostile_names),
	    cmocka_unit_test(test_cell),
	    cmocka_unit_test(test_bar),
	    cmocka_unit_test(test_where),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
