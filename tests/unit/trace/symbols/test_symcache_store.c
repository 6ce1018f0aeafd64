#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../util/unit.h"
#include "trace/symbols/symcache_store.h"

#define NAME "ab-12" SYMCACHE_SUFFIX

static char folder[] = "/tmp/whyoom-store-XXXXXX";

static void path_of(char path[PATH_MAX], const char *name)
{
	snprintf(path, PATH_MAX, "%s/%s", folder, name);
}

/* Whether an answer written through a store, as the environment says, is there afterwards. */
static bool keeps(void)
{
	struct symcache_store *store = symcache_store_open();
	size_t bytes = 0;
	char *data;
	bool good;

	if (!store)
		return false;
	symcache_store_write(store, NAME, "text", 4);
	symcache_store_close(store);
	store = symcache_store_open();
	data = symcache_store_read(store, NAME, 100, &bytes);
	good = data && bytes == 4 && !memcmp(data, "text", 4);
	free(data);
	symcache_store_close(store);
	return good;
}

static void set(const char *own, const char *xdg, const char *home)
{
	const char *values[] = {own, xdg, home};
	const char *names[] = {"WHYOOM_CACHE", "XDG_CACHE_HOME", "HOME"};

	for (int i = 0; i < 3; i++)
		if (values[i])
			setenv(names[i], values[i], 1);
		else
			unsetenv(names[i]);
}

static void places(void **state)
{
	char here[PATH_MAX], other[PATH_MAX], file[PATH_MAX];
	struct stat st;

	path_of(here, "a/b");
	path_of(other, "other");
	set(here, other, other);
	assert_true(keeps());
	path_of(file, "a/b/" NAME);
	assert_int_equal(access(file, F_OK), 0);
	set("", here, other);
	assert_true(keeps());
	path_of(file, "a/b/whyoom/" NAME);
	assert_int_equal(access(file, F_OK), 0);
	set(NULL, "relative", here);
	assert_true(keeps());
	path_of(file, "a/b/.cache/whyoom/" NAME);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	path_of(file, "a/b/.cache");
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_not_equal(access(other, F_OK), 0);
}

/* No directory, or a read-only one: works, and keeps nothing. */
static void not_kept(void **state)
{
	set("off", NULL, folder);
	assert_null(symcache_store_open());
	set(NULL, NULL, NULL);
	assert_null(symcache_store_open());
	set(NULL, NULL, "relative");
	assert_null(symcache_store_open());
	set("/dev/null/x", NULL, folder);
	assert_false(keeps());
	set("/proc/none/x", NULL, folder);
	assert_false(keeps());
}

/* A directory in which others may write, links, other kinds of files, and too large ones. */
static void others_are_not_trusted(void **state)
{
	char here[PATH_MAX], file[PATH_MAX], target[PATH_MAX];
	struct symcache_store *store;
	size_t bytes;
	int fd;

	path_of(here, "trusted");
	path_of(file, "trusted/" NAME);
	path_of(target, "target");
	set(here, NULL, NULL);
	assert_true(keeps());
	assert_int_equal(chmod(here, 0777), 0);
	assert_false(keeps());
	assert_int_equal(chmod(here, 0755), 0);
	assert_true(keeps());
	store = symcache_store_open();
	assert_null(symcache_store_read(store, NAME, 3, &bytes));
	assert_int_equal(rename(file, target), 0);
	assert_int_equal(symlink(target, file), 0);
	assert_null(symcache_store_read(store, NAME, 100, &bytes));
	/* The link is replaced, and its target stays. */
	symcache_store_write(store, NAME, "other", 5);
	fd = open(target, O_RDONLY);
	assert_int_equal(read(fd, here, 10), 4);
	close(fd);
	unlink(file);
	assert_int_equal(mkfifo(file, 0600), 0);
	assert_null(symcache_store_read(store, NAME, 100, &bytes));
	symcache_store_close(store);
}

/* A file larger than this process may write would end it. */
static void within_the_limit_of_file_sizes(void **state)
{
	struct rlimit before, tight;
	char here[PATH_MAX];

	path_of(here, "limit");
	set(here, NULL, NULL);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	tight = before;
	tight.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
	assert_false(keeps());
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_true(keeps());
}

static void make(const char *name, off_t bytes, time_t age)
{
	struct timespec times[2] = {{.tv_sec = time(NULL) - age}, {.tv_sec = time(NULL) - age}};
	char path[PATH_MAX];
	int fd;

	path_of(path, name);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, bytes), 0);
	assert_int_equal(futimens(fd, times), 0);
	close(fd);
}

static bool is_there(const char *name)
{
	char path[PATH_MAX];

	path_of(path, name);
	return access(path, F_OK) == 0;
}

/* Too much: the oldest files go, and only our own. */
static void bounded(void **state)
{
	char here[PATH_MAX];
	const off_t much = 200 << 20;

	path_of(here, "bounded");
	set(here, NULL, NULL);
	assert_true(keeps());
	make("bounded/01-01" SYMCACHE_SUFFIX, much, 5000);
	make("bounded/02-01" SYMCACHE_SUFFIX, much, 9000);
	make("bounded/.new-symbols-0123", 10, 100000);
	make("bounded/.new-symbols-4567", 10, 10);
	make("bounded/thesis.doc", 5 * much, 900000);
	assert_true(keeps());
	assert_true(is_there("bounded/02-01" SYMCACHE_SUFFIX));
	assert_false(is_there("bounded/.new-symbols-0123"));
	make("bounded/03-01" SYMCACHE_SUFFIX, much, 7000);
	assert_true(keeps());
	assert_true(is_there("bounded/01-01" SYMCACHE_SUFFIX));
	assert_false(is_there("bounded/02-01" SYMCACHE_SUFFIX));
	assert_false(is_there("bounded/03-01" SYMCACHE_SUFFIX));
	assert_true(is_there("bounded/.new-symbols-4567"));
	assert_true(is_there("bounded/thesis.doc"));
	assert_true(is_there("bounded/" NAME));
}

/* A file in use does not stay the oldest for long. */
static void use_makes_young(void **state)
{
	char here[PATH_MAX];
	struct symcache_store *store;
	struct stat st;
	size_t bytes;

	path_of(here, "use");
	set(here, NULL, NULL);
	assert_true(keeps());
	make("use/" NAME, 4, 200000);
	store = symcache_store_open();
	free(symcache_store_read(store, NAME, 100, &bytes));
	symcache_store_close(store);
	path_of(here, "use/" NAME);
	assert_int_equal(stat(here, &st), 0);
	assert_true(st.st_mtim.tv_sec > time(NULL) - 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(places),
	    cmocka_unit_test(not_kept),
	    cmocka_unit_test(others_are_not_trusted),
	    cmocka_unit_test(within_the_limit_of_file_sizes),
	    cmocka_unit_test(bounded),
	    cmocka_unit_test(use_makes_young),
	};
	char command[100];
	int failed;

	signal(SIGXFSZ, SIG_DFL);
	if (!mkdtemp(folder))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command) || failed;
}
