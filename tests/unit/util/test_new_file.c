/* A file appears whole or not at all, and the old one stays until then. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "util/io.h"
#include "util/new_file.h"
#include "util/unfinished.h"

static char folder[] = "/tmp/whyoom-new-file-XXXXXX";
static char target[64];

static int names(void)
{
	DIR *dir = opendir(folder);
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

static const char *content(void)
{
	static char text[64];
	FILE *f = fopen(target, "r");

	text[0] = '\0';
	assert_non_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	return text;
}

static void put(const char *text)
{
	struct new_file f;

	assert_int_equal(new_file_begin(&f, target), 0);
	assert_int_equal(io_write_at(f.fd, text, strlen(text), 0), 0);
	assert_int_equal(new_file_commit(&f, target), 0);
	assert_int_equal(f.fd, -1);
}

static void replaces(void **state)
{
	(void)state;
	put("a longer one");
	assert_string_equal(content(), "a longer one");
	put("one");
	assert_string_equal(content(), "one");
	assert_int_equal(names(), 1);
}

static void gives_up(void **state)
{
	struct new_file f, g;
	char inner[64];

	(void)state;
	put("before");
	assert_int_equal(new_file_begin(&f, target), 0);
	assert_int_equal(new_file_begin(&g, target), 0); /* two at once are two */
	assert_int_equal(names(), 3);
	new_file_abort(&f);
	new_file_abort(&f);
	new_file_abort(&g);
	assert_string_equal(content(), "before");
	assert_int_equal(names(), 1);
	assert_int_equal(new_file_begin(&f, "/no/such/place"), -ENOENT);
	/* A directory cannot be replaced. */
	snprintf(inner, sizeof(inner), "%s/inner", folder);
	assert_int_equal(mkdir(inner, 0700), 0);
	assert_int_equal(new_file_begin(&f, inner), 0);
	assert_int_equal(new_file_commit(&f, inner), -EISDIR);
	assert_int_equal(rmdir(inner), 0);
	assert_int_equal(names(), 1);
}

/* The longest name that the file system takes; it is shortened before a suffix is added. */
static void long_names(void **state)
{
	char path[512];
	struct new_file f;

	(void)state;
	snprintf(path, sizeof(path), "%s/%0255d", folder, 7);
	assert_int_equal(new_file_begin(&f, path), 0);
	assert_int_equal(new_file_commit(&f, path), 0);
	assert_int_equal(unlink(path), 0);
}

/* Interrupted, or out of space: the old file is unchanged, and no other file is beside it. */
static void interrupted(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	put("before");
	pid = fork();
	if (pid == 0) {
		struct new_file f;

		unfinished_watch();
		if (!new_file_begin(&f, target) && !io_write_at(f.fd, "new", 3, 0))
			raise(SIGTERM);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	assert_string_equal(content(), "before");
	assert_int_equal(names(), 1);
}

static void no_space(void **state)
{
	struct rlimit limit = {10, 10};
	int status;
	pid_t pid;

	(void)state;
	put("before");
	pid = fork();
	if (pid == 0) {
		struct new_file f;
		int rc;

		unfinished_watch();
		setrlimit(RLIMIT_FSIZE, &limit);
		rc = new_file_begin(&f, target);
		rc = rc ? rc : io_write_at(f.fd, "more than there is room for", 27, 0);
		new_file_abort(&f);
		_exit(rc == -EFBIG ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_string_equal(content(), "before");
	assert_int_equal(names(), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(replaces),
	    cmocka_unit_test(gives_up),
	    cmocka_unit_test(long_names),
	    cmocka_unit_test(interrupted),
	    cmocka_unit_test(no_space),
	};
	int failed;

	if (!mkdtemp(folder))
		return 1;
	snprintf(target, sizeof(target), "%s/target", folder);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(target);
	rmdir(folder);
	return failed;
}
