#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"
#include "util/progress.h"

static void says_how_far_and_how_long(void **state)
{
	char line[200];

	assert_string_equal(progress_line(line, sizeof(line), "reading x", 25, 100, 2000000000),
	    "reading x: 25 %, 6.00 s left");
	assert_string_equal(progress_line(line, sizeof(line), "x", 0, 100, 2000000000), "x: 0 %");
	assert_string_equal(progress_line(line, sizeof(line), "x", 100, 100, 1), "x: 100 %");
	assert_string_equal(progress_line(line, sizeof(line), "x", 5, 0, 1), "x ...");
	assert_string_equal(progress_line(line, sizeof(line), "x", 101, 100, 1), "x ...");
	assert_string_equal(progress_line(line, 6, "reading", 1, 100, 1), "readi");
}

/* Where stderr is no terminal there is never a line, however long it takes. */
static void silent_without_a_terminal(void **state)
{
	char path[] = "/tmp/whyoom-progress-XXXXXX";
	int fd = mkstemp(path), saved = dup(2);

	assert_true(fd >= 0);
	dup2(fd, 2);
	progress_begin("work", 2);
	usleep(1100000);
	progress_step(1);
	progress_end();
	dup2(saved, 2);
	assert_int_equal(lseek(fd, 0, SEEK_END), 0);
	close(fd);
	close(saved);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(says_how_far_and_how_long),
	    cmocka_unit_test(silent_without_a_terminal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
