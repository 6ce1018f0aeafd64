/* Units become bytes, numbers numbers, and other fields stay text. */
#include "../util/unit.h"

#include <string.h>

#include "explain/fields.h"

struct one {
	struct fields fields;
	struct arena arena;
};

static struct one read_fields(const char *pattern, const char *text)
{
	struct one one = {.arena = {0}};
	struct pattern *p = NULL;
	struct pattern_match m;

	assert_int_equal(pattern_new(pattern, &p, NULL), 0);
	assert_true(pattern_find(p, text, strlen(text), 0, strlen(text), &m));
	assert_int_equal(fields_of_match(&one.fields, &m, &one.arena), 0);
	pattern_free(p);
	return one;
}

static void done(struct one *one)
{
	fields_free(&one->fields);
	arena_free(&one->arena);
}

static void bytes(const char *pattern, const char *text, const char *name, uint64_t expected)
{
	struct one one = read_fields(pattern, text);
	uint64_t value = 0;

	assert_true(fields_bytes(&one.fields, name, &value));
	assert_int_equal(value, expected);
	done(&one);
}

static void test_sizes(void **state)
{
	bytes("(?<a_bytes>.*)", "1.50 GiB", "a_bytes", 3ull << 29);
	bytes("(?<a_bytes>.*)", "20MiB", "a_bytes", 20 << 20);
	bytes("(?<a_bytes>.*)", "512 bytes", "a_bytes", 512);
	bytes("(?<a_bytes>.*)", "1 byte", "a_bytes", 1);
	bytes("(?<a_bytes>.*)", "45B", "a_bytes", 45);
	bytes("(?<a_bytes>.*)", "151851674624", "a_bytes", 151851674624);
	bytes("(?<a_kB>.*)", "26,184,840", "a_bytes", 26184840ull << 10);
	bytes("(?<a_GiB>.*)", "7.34", "a_bytes", (uint64_t)(7.34 * (1 << 30)));
	bytes("(?<a_MiB>.*)", "144817", "a_bytes", 144817ull << 20);
	bytes("(?<a_GB>.*)", "2", "a_bytes", 2ull << 30);
	(void)state;
}

static void test_numbers(void **state)
{
	struct one one =
	    read_fields("(?<tokens_n>\\S+) (?<ratio_x>\\S+) (?<word>\\S+) (?<bad_n>\\S+) "
			"(?<none>z?)",
		"131,072 0.92 name 0x12 ");
	const struct field *f = fields_find(&one.fields, "tokens");

	assert_int_equal(f->type, FIELD_INTEGER);
	assert_int_equal(f->integer, 131072);
	f = fields_find(&one.fields, "ratio");
	assert_int_equal(f->type, FIELD_REAL);
	assert_true(f->real == 0.92);
	f = fields_find(&one.fields, "word");
	assert_int_equal(f->type, FIELD_TEXT);
	assert_string_equal(f->text, "name");
	f = fields_find(&one.fields, "bad_n");
	assert_int_equal(f->type, FIELD_TEXT);
	assert_null(fields_find(&one.fields, "none"));
	done(&one);
	(void)state;
}

/* Numbers beyond 64 bits, and sizes that do not fit, are text. */
static void test_too_large(void **state)
{
	struct one one = read_fields(
	    "(?<a_n>\\S+) (?<b_bytes>\\S+)", "99999999999999999999 99999999999999999999GiB");
	uint64_t value;

	assert_int_equal(fields_find(&one.fields, "a_n")->type, FIELD_TEXT);
	assert_false(fields_bytes(&one.fields, "b_bytes", &value));
	done(&one);
	(void)state;
}

static void test_rows(void **state)
{
	struct one one = {.arena = {0}};
	struct field_rows *rows = fields_add_rows(&one.fields, "rows", &one.arena);
	struct fields row = {0};

	assert_non_null(rows);
	assert_int_equal(fields_add_bytes(&row, "used_bytes", 5), 0);
	assert_int_equal(vec_push(rows, row), 0);
	assert_int_equal(fields_find(&one.fields, "rows")->rows->count, 1);
	done(&one);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_sizes),
	    cmocka_unit_test(test_numbers),
	    cmocka_unit_test(test_too_large),
	    cmocka_unit_test(test_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
