#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../util/unit.h"
#include "cmd/run/run_options.h"

#define PARSE(out, ...)                                                                            \
	({                                                                                         \
		static char *argv[] = {"run", __VA_ARGS__, NULL};                                  \
		err.text[0] = '\0';                                                                \
		run_options_parse((int)(sizeof(argv) / sizeof(*argv)) - 1, argv, out, &err);       \
	})
/* A flag before "true": the stored value. */
#define TAKES(option, value, ...)                                                                  \
	do {                                                                                       \
		assert_int_equal(PARSE(&o, __VA_ARGS__, "true"), 0);                               \
		assert_string_equal(o.given[RUN_OPTION_##option], value);                          \
		assert_string_equal(o.program[0], "true");                                         \
		assert_null(o.program[1]);                                                         \
		for (int i_ = 0; i_ < RUN_OPTIONS; i_++)                                           \
			assert_true(i_ == RUN_OPTION_##option || !o.given[i_]);                    \
		run_options_fini(&o);                                                              \
	} while (0)
#define REFUSES(words, ...)                                                                        \
	do {                                                                                       \
		assert_int_equal(PARSE(&o, __VA_ARGS__), -EINVAL);                                 \
		assert_non_null(strstr(err.text, words));                                          \
		for (int i_ = 0; i_ < RUN_OPTIONS; i_++)                                           \
			assert_null(o.given[i_]);                                                  \
	} while (0)

static struct run_options o;
static struct err err;

static void values(void **state)
{
	TAKES(dir, "here", "-o", "here");
	TAKES(dir, "here", "-ohere");
	TAKES(dir, "here", "--dir", "here");
	TAKES(dir, "here=there", "--dir=here=there");
	TAKES(dir, "-", "-o", "-");
	TAKES(dir, "--", "-o", "--"); /* a value, not the end of the flags */
	TAKES(dir, "second", "-o", "first", "--dir=second");
	TAKES(max_trace, "67108864", "--max-trace", "64MiB");
	TAKES(max_trace, "1610612736", "--max-trace=1.5g");
	TAKES(max_trace, "1048576", "--max-trace", "1048576");
	TAKES(max_trace, "17592186044416", "--max-trace", "16TiB");
	TAKES(exact_from, "1", "--exact-from=1");
	TAKES(quiet, "1", "--quiet");
	TAKES(quiet, "0", "--no-quiet");
	TAKES(quiet, "0", "--quiet=0");
	TAKES(stacks, "0", "--no-stacks");
	TAKES(stacks, "1", "--no-stacks", "--stacks"); /* the last one counts */
	TAKES(python_watch, "0", "--no-python-watch");
	TAKES(python, "force", "--python", "force");
	TAKES(python, "off", "--python=off");
}

static void errors(void **state)
{
	REFUSES("no program", "--");
	REFUSES("no program", "--quiet");
	REFUSES("no program", "--dir=x", "--");
	REFUSES("-o needs", "-o");
	REFUSES("-o needs", "-o", "", "true");
	REFUSES("needs a value", "--dir=", "true");
	REFUSES("needs a value", "--dir");
	REFUSES("needs a value", "--max-trace");
	REFUSES("--max-trace 5 is too small: the smallest is 1MiB", "--max-trace", "5", "true");
	REFUSES("--max-trace 999999TiB is too large: the largest is 16TiB", "--max-trace=999999TiB",
	    "true");
	REFUSES("--sample-every 2TiB is too large", "--sample-every=2TiB", "true");
	REFUSES("not a size", "--max-trace", "true");
	REFUSES("not a size", "--max-trace=", "true");
	REFUSES("not a size", "--max-trace=-1", "true");
	REFUSES("not a size", "--max-trace=99999999999999999999", "true");
	REFUSES("not one of auto|off|force", "--python=o", "true");
	REFUSES("not one of", "--python=auto|off", "true");
	REFUSES("not one of", "--python=", "true");
	REFUSES("0 or 1", "--quiet=2", "true");
	REFUSES("0 or 1", "--quiet=", "true");
	REFUSES("unknown option '--nosuch'", "--nosuch", "true");
	REFUSES("unknown option '--no-dir'", "--no-dir", "true");
	REFUSES("unknown option '--no-stacks'", "--no-stacks=1", "true");
	REFUSES("unknown option '--max_trace'", "--max_trace=1", "true");
	REFUSES("unknown option '--max'", "--max=1", "true");
	REFUSES("unknown option '-x'", "-x", "true");
	REFUSES("unknown option '-'", "-", "true");
	/* Values from before the mistake are freed. */
	REFUSES("unknown option", "-o", "here", "--max-trace=1G", "--nosuch", "true");
	assert_int_equal(run_options_parse(1, (char *[]){"run", NULL}, &o, &err), -EINVAL);
}

/* Flags end at the first other word: the rest is the program's own. */
static void the_program(void **state)
{
	assert_int_equal(PARSE(&o, "python", "-o", "its", "--quiet", "--"), 0);
	assert_string_equal(o.program[0], "python");
	assert_string_equal(o.program[4], "--");
	assert_null(o.program[5]);
	assert_null(o.given[RUN_OPTION_dir]);
	assert_null(o.given[RUN_OPTION_quiet]);
	run_options_fini(&o);
	assert_int_equal(PARSE(&o, "--quiet", "--", "--strange-name", "-o"), 0);
	assert_string_equal(o.program[0], "--strange-name");
	run_options_fini(&o);
	assert_int_equal(PARSE(&o, "--help", "--nosuch"), 0);
	assert_true(o.help);
	run_options_fini(&o);
	assert_int_equal(PARSE(&o, "--python-objects", "true"), 0);
	assert_true(o.python_objects);
	assert_null(o.simgpu);
	run_options_fini(&o);
	assert_int_equal(PARSE(&o, "--simgpu", "2x24GiB", "true"), 0);
	assert_string_equal(o.simgpu, "2x24GiB");
	assert_string_equal(o.program[0], "true");
	run_options_fini(&o);
	assert_int_equal(PARSE(&o, "--simgpu=H100", "true"), 0);
	assert_string_equal(o.simgpu, "H100");
	unsetenv("WHYOOM_SIMGPU_MACHINE");
	assert_int_equal(run_options_export(&o), 0);
	assert_string_equal(getenv("WHYOOM_SIMGPU"), "H100");
	assert_non_null(strstr(getenv("WHYOOM_SIMGPU_MACHINE"), "run-"));
	setenv("WHYOOM_SIMGPU_MACHINE", "mine", 1);
	assert_int_equal(run_options_export(&o), 0);
	assert_string_equal(getenv("WHYOOM_SIMGPU_MACHINE"), "mine");
	run_options_fini(&o);
	assert_int_equal(PARSE(&o, "--simgpu=", "true"), -EINVAL);
	assert_int_equal(PARSE(&o, "--simgpu"), -EINVAL);
	run_options_fini(&o); /* a second time is harmless */
}

/* The flag, else the variable, else the default. */
static void precedence(void **state)
{
	unsetenv("WHYOOM_STACKS");
	unsetenv("WHYOOM_DIR");
	assert_int_equal(PARSE(&o, "true"), 0);
	assert_string_equal(run_option_text(&o, RUN_OPTION_dir), "");
	assert_string_equal(run_option_text(&o, RUN_OPTION_max_trace), "2GiB");
	assert_true(run_option_flag(&o, RUN_OPTION_stacks));
	assert_false(run_option_flag(&o, RUN_OPTION_off));
	setenv("WHYOOM_DIR", "/from/variable", 1);
	setenv("WHYOOM_STACKS", "0", 1);
	assert_string_equal(run_option_text(&o, RUN_OPTION_dir), "/from/variable");
	assert_false(run_option_flag(&o, RUN_OPTION_stacks));
	/* Wrong and empty ones leave the default, as in the library. */
	setenv("WHYOOM_STACKS", "maybe", 1);
	assert_true(run_option_flag(&o, RUN_OPTION_stacks));
	assert_int_equal(run_options_export(&o), 0);
	assert_string_equal(getenv("WHYOOM_STACKS"), "maybe"); /* the library reports it itself */
	setenv("WHYOOM_STACKS", "", 1);
	assert_true(run_option_flag(&o, RUN_OPTION_stacks));
	setenv("WHYOOM_STACKS", "1", 1);
	run_options_fini(&o);
	assert_int_equal(PARSE(&o, "-o", "/from/flag", "--no-stacks", "true"), 0);
	assert_string_equal(run_option_text(&o, RUN_OPTION_dir), "/from/flag");
	assert_false(run_option_flag(&o, RUN_OPTION_stacks));

	unsetenv("PYTHONMALLOC");
	unsetenv("WHYOOM_QUIET");
	assert_int_equal(run_options_export(&o), 0);
	assert_string_equal(getenv("WHYOOM_DIR"), "/from/flag");
	assert_string_equal(getenv("WHYOOM_STACKS"), "0");
	assert_null(getenv("WHYOOM_QUIET")); /* not given: not reported */
	assert_null(getenv("PYTHONMALLOC"));
	run_options_fini(&o);
	assert_int_equal(PARSE(&o, "--max-trace=1MiB", "--python-objects", "true"), 0);
	assert_int_equal(run_options_export(&o), 0);
	assert_string_equal(getenv("WHYOOM_MAX_TRACE"), "1048576");
	assert_string_equal(getenv("PYTHONMALLOC"), "malloc");
	run_options_fini(&o);
}

/* Every option has its paragraph, and no line is too wide. */
static void help(void **state)
{
	static const char *const flags[] = {
#define OPTION(name, type, value, help) #name,
#define OPTION_CHOICE(name, value, choices, help) #name,
#include "whyoom/options.def"
#undef OPTION
#undef OPTION_CHOICE
	};
	char *text = NULL, *save;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	run_options_help(f);
	fclose(f);
	assert_int_equal(sizeof(flags) / sizeof(*flags), RUN_OPTIONS);
	for (size_t i = 0; i < RUN_OPTIONS; i++) {
		char plain[64], negative[64];

		snprintf(plain, sizeof(plain), "\n  --%s ", flags[i]);
		snprintf(negative, sizeof(negative), "\n  --no-%s ", flags[i]);
		for (char *p = plain; *p; p++)
			*p = *p == '_' ? '-' : *p;
		for (char *p = negative; *p; p++)
			*p = *p == '_' ? '-' : *p;
		assert_true(!strncmp(text, plain + 1, strlen(plain + 1)) || strstr(text, plain) ||
			    strstr(text, negative));
	}
	assert_non_null(strstr(text, "--max-trace SIZE"));
	assert_non_null(strstr(text, "--no-stacks "));
	assert_non_null(strstr(text, "(auto|off|force)"));
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		assert_true(strlen(line) <= 96);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(values),
	    cmocka_unit_test(errors),
	    cmocka_unit_test(the_program),
	    cmocka_unit_test(precedence),
	    cmocka_unit_test(help),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
