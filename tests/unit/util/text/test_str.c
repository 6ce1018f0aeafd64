#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "util/text/str.h"

static void grows(void **state)
{
	struct str s = {0};

	assert_string_equal(str_text(&s), "");
	for (int i = 0; i < 1000; i++)
		str_printf(&s, "%d,", i % 10);
	assert_int_equal(s.length, 2000);
	assert_int_equal(strlen(str_text(&s)), 2000);
	str_clear(&s);
	str_puts(&s, "abc");
	str_putc(&s, 'd');
	str_add(&s, "ef!", 2);
	assert_string_equal(str_text(&s), "abcdef");
	str_free(&s);
	assert_null(s.text);
	assert_string_equal(str_text(&s), "");
}

static void failure_sticks(void **state)
{
	struct str s = {0};

	str_puts(&s, "abc");
	str_add(&s, "x", SIZE_MAX / 2 + 1);
	assert_true(s.failed);
	str_puts(&s, "more");
	assert_string_equal(str_text(&s), "abc");
	str_free(&s);
}

static void numbers(void **state)
{
	struct str s = {0};

	str_u64(&s, 0);
	str_putc(&s, ' ');
	str_u64(&s, 1000);
	str_putc(&s, ' ');
	str_u64(&s, UINT64_MAX);
	assert_string_equal(str_text(&s), "0 1000 18446744073709551615");
	str_free(&s);
}

static void json(void **state)
{
	struct str s = {0};

	str_json(&s, "a\"\\\n\t\x01\x7f/\xc3\xa9");
	assert_string_equal(str_text(&s), "\"a\\\"\\\\\\n\\t\\u0001\\u007f/\xc3\xa9\"");
	str_clear(&s);
	/* A lone continuation, an overlong slash, a surrogate, a cut sequence: each byte
	 * replaced. */
	str_json(&s, "\x80|\xc0\xaf|\xed\xa0\x80|\xe2\x82");
	assert_string_equal(str_text(&s),
	    "\"\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd"
	    "\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd\"");
	str_free(&s);
}

static void safe_for_a_terminal(void **state)
{
	struct str s = {0};

	str_safe(&s, "ok \xc3\xa9 \033[2J\r \xc2\x9b"
		     "31m \xff");
	assert_string_equal(str_text(&s), "ok \xc3\xa9 \\x1b[2J\\x0d \\u009b"
					  "31m \\xff");
	str_clear(&s);
	/* An override of the direction, a blank without width, a tag; and harmless foreign text. */
	str_safe(&s, "a\xe2\x80\xae|\xe2\x80\x8b|\xf3\xa0\x81\x81|\xe2\x82\xac \xd7\xa9");
	assert_string_equal(str_text(&s), "a\\u202e|\\u200b|\\ue0041|\xe2\x82\xac \xd7\xa9");
	str_clear(&s);
	str_json(&s, "a\xe2\x80\xae|\xf3\xa0\x81\x81|\xe2\x82\xac");
	assert_string_equal(str_text(&s), "\"a\\u202e|\\udb40\\udc41|\xe2\x82\xac\"");
	str_free(&s);
}

static void valid(void **state)
{
	struct str s = {0};

	str_valid(&s, "a\x1b\xc3\xa4\xff\xe2\x82z");
	str_valid(&s, NULL);
	assert_string_equal(str_text(&s), "a\x1b\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz");
	str_free(&s);
	(void)state;
}

static void utf8(void **state)
{
	assert_int_equal(str_utf8(""), 0);
	assert_int_equal(str_utf8("a"), 1);
	assert_int_equal(str_utf8("\xc3\xa9"), 2);
	assert_int_equal(str_utf8("\xe2\x82\xac"), 3);
	assert_int_equal(str_utf8("\xf0\x9f\x98\x80"), 4);
	assert_int_equal(str_utf8("\xf4\x90\x80\x80"), 0);
	assert_int_equal(str_utf8("\xe0\x80\x80"), 0);
	assert_int_equal(str_utf8("\xf5"), 0);
}

static void fit(void **state)
{
	char out[5];

	(void)state;
	str_fit("abcdef", out, sizeof(out));
	assert_string_equal(out, "abcd");
	str_fit("abc\xc3\xa9", out, sizeof(out));
	assert_string_equal(out, "abc");
	str_fit("a\xff", out, sizeof(out));
	assert_string_equal(out, "a\xff");
	str_fit(NULL, out, 1);
	assert_string_equal(out, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(grows),
	    cmocka_unit_test(failure_sticks),
	    cmocka_unit_test(numbers),
	    cmocka_unit_test(json),
	    cmocka_unit_test(safe_for_a_terminal),
	    cmocka_unit_test(valid),
	    cmocka_unit_test(utf8),
	    cmocka_unit_test(fit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
