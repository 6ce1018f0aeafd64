/* Sentences with a message's numbers in them. */
#include "../util/unit.h"

#include <string.h>

#include "explain/meaning.h"

static void is(struct fields *f, const char *text, const char *expected)
{
	struct str s = {0};

	meaning_write(&s, text, f);
	assert_string_equal(str_text(&s), expected);
	str_free(&s);
}

static void test_meaning(void **state)
{
	struct fields f = {0};
	struct arena arena = {0};

	fields_add_bytes(&f, "used_bytes", 3ull << 29);
	fields_add_integer(&f, "pid", 78999);
	fields_add_integer(&f, "less", -5);
	fields_add_text(&f, "comm", "python", 6, &arena);
	is(&f, "plain", "plain");
	is(&f, "{comm} had {used_bytes}.", "python had 1.50 GiB.");
	is(&f, "{pid} {=pid} {less}", "78,999 78999 -5");
	is(&f, "{none}", "?");
	is(&f, "a[[ of {none}]]b", "ab");
	is(&f, "a[[ of {comm}]]b[[{none}]]", "a of pythonb");
	is(&f, "{open", "{open");
	is(&f, "x ]] [y]", "x ]] [y]");
	fields_free(&f);
	arena_free(&arena);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_meaning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
