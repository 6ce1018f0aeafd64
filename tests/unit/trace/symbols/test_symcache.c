#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../util/unit.h"
#include "trace/symbols/symcache.h"

static char folder[] = "/tmp/whyoom-symcache-XXXXXX";
static const uint8_t id[20] = {0xab, 0xcd, 1, 2, 3};
static const struct symcache_mark file = {1, 2, 3, 4, 5};
static const struct symcache_debug debug = {"libx.debug", {{9, 8, 7, 6, 5}}};

static struct symcache *open_as(struct symcache_store *store, const struct symcache_mark *mark)
{
	struct symcache *c = symcache_open(store, id, sizeof(id), mark);

	assert_non_null(c);
	return c;
}

static struct symcache_store *store_of_ours(void)
{
	struct symcache_store *store = symcache_store_open();

	assert_non_null(store);
	return store;
}

/* Keeps an answer of two frames at `address`. */
static void keep(uint64_t address, const char *inner)
{
	struct symcache_store *store = store_of_ours();
	struct symcache *c = open_as(store, &file);
	char gone[32];
	struct objfile_frame frames[2] = {
	    {.function = "outer", .file = "a.c", .line = 3}, {.function = gone, .inlined = true}};

	snprintf(gone, sizeof(gone), "%s", inner);
	if (!symcache_kept(c))
		symcache_renew(c, &debug);
	assert_true(symcache_add(c, address, frames, 2));
	memset(gone, 0, sizeof(gone));
	assert_string_equal(frames[1].function, inner);
	symcache_close(c);
	symcache_store_close(store);
}

/* The inner function at an address; NULL: not kept. */
static const char *kept(uint64_t address)
{
	static char inner[64];
	struct objfile_frame frames[OBJFILE_FRAMES_MAX];
	struct symcache_store *store = store_of_ours();
	struct symcache *c = open_as(store, &file);
	int n = symcache_find(c, address, frames);

	if (n >= 0) {
		assert_int_equal(n, 2);
		assert_string_equal(frames[0].function, "outer");
		assert_string_equal(frames[0].file, "a.c");
		assert_int_equal(frames[0].line, 3);
		assert_false(frames[0].inlined);
		assert_null(frames[1].file);
		assert_true(frames[1].inlined);
		snprintf(inner, sizeof(inner), "%s", frames[1].function);
	}
	symcache_close(c);
	symcache_store_close(store);
	return n < 0 ? NULL : inner;
}

/* The path of the one file in the directory. */
static void only_file(char path[300])
{
	DIR *dir = opendir(folder);
	struct dirent *e;
	int n = 0;

	assert_non_null(dir);
	while ((e = readdir(dir)))
		if (*e->d_name != '.') {
			snprintf(path, 300, "%s/%s", folder, e->d_name);
			n++;
		}
	closedir(dir);
	assert_int_equal(n, 1);
}

static void clear(void)
{
	char command[100];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	assert_int_equal(system(command), 0);
}

static void answers_are_kept(void **state)
{
	struct objfile_frame none[OBJFILE_FRAMES_MAX];
	struct symcache_store *store;
	struct symcache *c;
	struct stat st;
	char path[300];

	clear();
	assert_null(kept(100));
	keep(100, "first");
	keep(90, "second"); /* beside the existing ones */
	assert_string_equal(kept(100), "first");
	assert_string_equal(kept(90), "second");
	assert_null(kept(95));
	only_file(path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat(folder, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);

	/* Their dependencies are kept; "unknown" is an answer, too. */
	store = store_of_ours();
	c = open_as(store, &file);
	assert_non_null(symcache_kept(c));
	assert_memory_equal(symcache_kept(c), &debug, sizeof(debug));
	assert_true(symcache_add(c, 7, none, 0));
	symcache_close(c);
	c = open_as(store, &file);
	assert_int_equal(symcache_find(c, 7, none), 0);
	symcache_renew(c, NULL);
	assert_int_equal(symcache_find(c, 7, none), -1);
	symcache_close(c);
	symcache_store_close(store);
}

/* Two at once: both writers' answers are there afterwards. */
static void two_reports_at_once(void **state)
{
	struct symcache_store *store;
	struct objfile_frame f[2] = {
	    {.function = "outer", .file = "a.c", .line = 3}, {.function = "x", .inlined = true}};
	struct symcache *a, *b;

	clear();
	keep(3, "before");
	store = store_of_ours();
	a = open_as(store, &file);
	b = open_as(store, &file);
	symcache_renew(a, &debug);
	symcache_renew(b, &debug);
	assert_true(symcache_add(a, 1, f, 2));
	assert_true(symcache_add(b, 1, f, 2));
	assert_true(symcache_add(b, 2, f, 2));
	symcache_close(a);
	symcache_close(b);
	symcache_store_close(store);
	assert_string_equal(kept(1), "x");
	assert_string_equal(kept(2), "x");
}

static void another_file_has_others(void **state)
{
	struct symcache_mark later = file;
	struct symcache_store *store;
	struct symcache *c;

	clear();
	keep(100, "first");
	later.ctime_ns++;
	store = store_of_ours();
	c = open_as(store, &later);
	assert_null(symcache_kept(c));
	symcache_close(c);
	c = symcache_open(store, id, sizeof(id) - 1, &file);
	assert_null(symcache_kept(c));
	symcache_close(c);
	symcache_store_close(store);
}

/* Cut anywhere, or with any byte changed: as if absent, and written anew. */
static void damaged_files_are_none(void **state)
{
	uint8_t whole[4096], other;
	char path[300];
	ssize_t bytes;
	int fd;

	clear();
	keep(100, "first");
	only_file(path);
	fd = open(path, O_RDWR);
	bytes = pread(fd, whole, sizeof(whole), 0);
	assert_true(bytes > 100 && bytes < (ssize_t)sizeof(whole));
	for (ssize_t i = 0; i < bytes; i++) {
		other = whole[i] ^ 0x55;
		assert_int_equal(pwrite(fd, &other, 1, i), 1);
		assert_null(kept(100));
		assert_int_equal(pwrite(fd, &whole[i], 1, i), 1);
	}
	assert_string_equal(kept(100), "first");
	for (ssize_t i = 0; i < bytes; i += 7) {
		assert_int_equal(ftruncate(fd, i), 0);
		assert_null(kept(100));
		assert_int_equal(pwrite(fd, whole, (size_t)bytes, 0), bytes);
	}
	assert_int_equal(ftruncate(fd, 50), 0);
	close(fd);
	keep(100, "again");
	assert_string_equal(kept(100), "again");
}

static void without_a_store(void **state)
{
	struct objfile_frame f = {.function = "f"};
	struct symcache *c = open_as(NULL, &file);

	assert_true(symcache_add(c, 1, &f, 1));
	assert_string_equal(f.function, "f");
	symcache_close(c);
	symcache_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(answers_are_kept),
	    cmocka_unit_test(two_reports_at_once),
	    cmocka_unit_test(another_file_has_others),
	    cmocka_unit_test(damaged_files_are_none),
	    cmocka_unit_test(without_a_store),
	};
	int failed;

	if (!mkdtemp(folder))
		return 1;
	setenv("WHYOOM_CACHE", folder, 1);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	clear();
	return failed;
}
