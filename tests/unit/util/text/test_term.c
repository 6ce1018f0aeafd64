#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "../unit.h"
#include "util/text/term.h"

static int pipe_end(void)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	return ends[1];
}

static void no_colour_without_a_terminal(void **state)
{
	int fd = pipe_end();

	setenv("TERM", "xterm", 1);
	unsetenv("NO_COLOR");
	assert_false(term_colour(fd));
	close(fd);
}

static void colour_on_a_terminal_unless_refused(void **state)
{
	int fd = posix_openpt(O_RDWR | O_NOCTTY);

	if (fd < 0)
		skip();
	setenv("TERM", "xterm", 1);
	unsetenv("NO_COLOR");
	assert_true(term_colour(fd));
	setenv("NO_COLOR", "", 1); /* empty: as if unset */
	assert_true(term_colour(fd));
	setenv("NO_COLOR", "1", 1);
	assert_false(term_colour(fd));
	unsetenv("NO_COLOR");
	setenv("TERM", "dumb", 1);
	assert_false(term_colour(fd));
	unsetenv("TERM");
	assert_false(term_colour(fd));
	close(fd);
}

static void width(void **state)
{
	int fd = pipe_end();

	unsetenv("COLUMNS");
	assert_int_equal(term_width(fd), 80);
	setenv("COLUMNS", "132", 1);
	assert_int_equal(term_width(fd), 132);
	setenv("COLUMNS", "10", 1);
	assert_int_equal(term_width(fd), 40);
	setenv("COLUMNS", "rubbish", 1);
	assert_int_equal(term_width(fd), 80);
	close(fd);
}

static void columns(void **state)
{
	assert_int_equal(term_columns("abc"), 3);
	assert_int_equal(term_columns("\xc3\xa9"), 1);
	assert_int_equal(term_columns("e\xcc\x81"), 1); /* a combining accent */
	assert_int_equal(term_columns("\xe6\xbc\xa2"), 2); /* a wide character */
	assert_int_equal(term_columns("\xff\xff"), 2);
	assert_string_equal(term_style(false, TERM_RED), "");
	assert_string_equal(term_style(true, TERM_PLAIN), "\033[0m");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(no_colour_without_a_terminal),
	    cmocka_unit_test(colour_on_a_terminal_unless_refused),
	    cmocka_unit_test(width),
	    cmocka_unit_test(columns),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
