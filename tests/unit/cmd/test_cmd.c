#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "unit.h"

static void suggestions(void **state)
{
	assert_string_equal(cmd_suggest("reprot"), "report");
	assert_string_equal(cmd_suggest("rport"), "report");
	assert_string_equal(cmd_suggest("reports"), "report");
	assert_string_equal(cmd_suggest("rep"), "report"); /* a beginning */
	assert_string_equal(cmd_suggest("stes"), "sites");
	assert_null(cmd_suggest("quux"));
	assert_null(cmd_suggest("r")); /* too little to say */
	assert_null(cmd_suggest("a-very-long-word-that-is-longer-than-any-command-could-be"));
}

static void help(void **state)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	cmd_help(cmd_table[0], f);
	fclose(f);
	assert_string_equal(text, "Usage: whyoom report TRACE\n\nSay why.\n\ndetails\n  --more\n");
	free(text);
	f = open_memstream(&text, &size);
	cmd_help(NULL, f);
	fclose(f);
	assert_non_null(strstr(text, "\n  report     say why\n  sites      stacks\n"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(suggestions),
	    cmocka_unit_test(help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
