#include <errno.h>
#include <string.h>

#include "../unit.h"
#include "util/text/err.h"

static void keeps_words_and_code(void **state)
{
	struct err err = {""};

	assert_int_equal(err_set(&err, -ENOENT, "%s: gone, %d", "file", 3), -ENOENT);
	assert_string_equal(err.text, "file: gone, 3");
	assert_int_equal(err_set(NULL, -EINVAL, "nobody reads this"), -EINVAL);
}

static void long_words_are_cut(void **state)
{
	struct err err;
	char text[2000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	err_set(&err, -1, "%s", text);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(keeps_words_and_code),
	    cmocka_unit_test(long_words_are_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
