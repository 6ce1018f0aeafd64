#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/run_options.h"
#include "unit.h"

static int parse(struct run_options *o, struct err *err, const char *a, const char *b,
    const char *c, const char *d)
{
	static char words[5][64];
	static char *argv[6];
	const char *given[] = {"run", a, b, c, d};
	int argc = 0;

	for (; argc < 5 && given[argc]; argc++) {
		snprintf(words[argc], sizeof(words[0]), "%s", given[argc]);
		argv[argc] = words[argc];
	}
	argv[argc] = NULL;
	return run_options_parse(argc, argv, o, err);
}

static void ends_at_the_program(void **state)
{
	struct run_options o;
	struct err err;

	assert_int_equal(parse(&o, &err, "-o", "dir", "python", "--quiet"), 0);
	assert_string_equal(run_option_text(&o, RUN_OPTION_dir), "dir");
	assert_string_equal(o.program[0], "python");
	assert_string_equal(o.program[1], "--quiet");
	assert_null(o.given[RUN_OPTION_quiet]);
	run_options_fini(&o);
	assert_int_equal(parse(&o, &err, "-odir", "--", "-x", NULL), 0);
	assert_string_equal(run_option_text(&o, RUN_OPTION_dir), "dir");
	assert_string_equal(o.program[0], "-x");
	run_options_fini(&o);
}

static void values(void **state)
{
	struct run_options o;
	struct err err;

	assert_int_equal(parse(&o, &err, "--max-trace", "64MiB", "--no-stacks", "x"), 0);
	assert_string_equal(run_option_text(&o, RUN_OPTION_max_trace), "67108864");
	assert_false(run_option_flag(&o, RUN_OPTION_stacks));
	assert_true(run_option_flag(&o, RUN_OPTION_cmdline));
	run_options_fini(&o);
	assert_int_equal(parse(&o, &err, "--stacks=1", "--stacks=0", "--python=off", "x"), 0);
	assert_false(run_option_flag(&o, RUN_OPTION_stacks)); /* the last one counts */
	assert_string_equal(run_option_text(&o, RUN_OPTION_python), "off");
	run_options_fini(&o);
}

static void wrong_ones(void **state)
{
	static const char *const wrong[][2] = {{"--max-trace", "much"}, {"--max-trace=", "x"},
	    {"--stacks=2", "x"}, {"--python=maybe", "x"}, {"--python=", "x"}, {"--stack", "x"},
	    {"--max_trace=1", "x"}, {"--no-python", "x"}, {"-x", "x"}, {"-o", NULL}, {"--", NULL},
	    {"--quiet", NULL}, {"--max-trace", NULL}, {NULL, NULL}};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct run_options o;
		struct err err = {""};

		assert_int_equal(parse(&o, &err, wrong[i][0], wrong[i][1], NULL, NULL), -EINVAL);
		assert_true(err.text[0]);
	}
}

static void the_environment_stands_in(void **state)
{
	struct run_options o;
	struct err err;

	setenv("WHYOOM_DIR", "by-variable", 1);
	setenv("WHYOOM_QUIET", "1", 1);
	setenv("WHYOOM_STACKS", "rubbish", 1);
	assert_int_equal(parse(&o, &err, "--no-quiet", "x", NULL, NULL), 0);
	assert_string_equal(run_option_text(&o, RUN_OPTION_dir), "by-variable");
	assert_false(run_option_flag(&o, RUN_OPTION_quiet));
	assert_true(run_option_flag(&o, RUN_OPTION_stacks)); /* the default */
	assert_int_equal(run_options_export(&o), 0);
	assert_string_equal(getenv("WHYOOM_QUIET"), "0");
	assert_string_equal(getenv("WHYOOM_STACKS"), "rubbish"); /* the library says so itself */
	assert_null(getenv("PYTHONMALLOC"));
	run_options_fini(&o);
	assert_int_equal(parse(&o, &err, "--python-objects", "x", NULL, NULL), 0);
	assert_int_equal(run_options_export(&o), 0);
	assert_string_equal(getenv("PYTHONMALLOC"), "malloc");
	run_options_fini(&o);
}

static void help_names_every_option(void **state)
{
	char *text = NULL, flag[64];
	size_t size;
	FILE *f = open_memstream(&text, &size);

	run_options_help(f);
	fclose(f);
#define FLAG(name)                                                                                 \
	snprintf(flag, sizeof(flag), "-%s", name);                                                 \
	for (char *p = flag; *p; p++)                                                              \
		*p = *p == '_' ? '-' : *p;                                                         \
	assert_non_null(strstr(text, flag));
#define OPTION(name, type, value, help) FLAG(#name)
#define OPTION_CHOICE(name, value, choices, help)                                                  \
	FLAG(#name) assert_non_null(strstr(text, choices));
#include "whyoom/options.def"
	assert_non_null(strstr(text, "--max-trace SIZE"));
	assert_non_null(strstr(text, "--no-cmdline"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(ends_at_the_program),
	    cmocka_unit_test(values),
	    cmocka_unit_test(wrong_ones),
	    cmocka_unit_test(the_environment_stands_in),
	    cmocka_unit_test(help_names_every_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
