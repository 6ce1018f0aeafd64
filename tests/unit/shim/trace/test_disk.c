/* test_disk.c - a directory's bound: shared by processes, never exceeded, safe from a damaged
 * file. */
#include "../under.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/options.h"
#include "trace/disk.h"

#define MIB (1u << 20)

static char top[64];
static int dir;

static void path_of(char out[128], const char *name)
{
	snprintf(out, 128, "%s/%s", top, name);
}

static int begin(void **state)
{
	strcpy(top, "/tmp/whyoom-disk-XXXXXX");
	if (!mkdtemp(top))
		return -1;
	dir = open(top, O_RDONLY | O_DIRECTORY);
	options.max_disk = 64 * MIB;
	return dir < 0;
}

static int end(void **state)
{
	char command[100];

	disk_close();
	close(dir);
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command);
}

static struct trace_disk content(void)
{
	struct trace_disk d = {0};
	char path[128];
	int fd;

	path_of(path, TRACE_DISK_NAME);
	fd = open(path, O_RDONLY);
	assert_int_equal(read(fd, &d, sizeof(d)), sizeof(d));
	close(fd);
	return d;
}

static void put(const char *name, const void *bytes, size_t n)
{
	char path[128];
	int fd;

	path_of(path, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(write(fd, bytes, n), n);
	close(fd);
}

static void test_shares(void **state)
{
	disk_open(dir);
	assert_int_equal(disk_bound(), 64 * MIB);
	assert_int_equal(disk_room(DISK_ORDINARY), 56 * MIB);
	assert_int_equal(disk_room(DISK_START), 60 * MIB);
	assert_int_equal(disk_room(DISK_LAST), 64 * MIB);
	assert_true(disk_take(56 * MIB, DISK_ORDINARY));
	assert_false(disk_take(1, DISK_ORDINARY));
	assert_true(disk_take(4 * MIB, DISK_START));
	assert_false(disk_take(1, DISK_START));
	assert_true(disk_take(4 * MIB, DISK_LAST));
	assert_false(disk_take(1, DISK_LAST));
	assert_int_equal(content().held, 64 * MIB);
	disk_give(57 * MIB);
	assert_int_equal(disk_room(DISK_ORDINARY), 49 * MIB);
	assert_int_equal(content().bound, 64 * MIB);
}

/* Later processes find the first one's bound and count. */
static void test_found_again(void **state)
{
	disk_open(dir);
	assert_true(disk_take(MIB, DISK_ORDINARY));
	disk_close();
	options.max_disk = 5;
	disk_open(dir);
	assert_int_equal(disk_bound(), 64 * MIB);
	assert_int_equal(disk_room(DISK_LAST), 63 * MIB);
}

static void test_default(void **state)
{
	options.max_disk = 0;
	disk_open(dir);
	assert_in_range(disk_bound(), MIB, 16ull << 30);
}

/* Racing processes, each with a mapping of its own: the grants fit together. */
static void test_race(void **state)
{
	enum { PROCESSES = 8, TRIES = 20000, BYTES = 4096 };
	uint64_t *taken =
	    mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t sum = 0;
	int status;

	for (int i = 0; i < PROCESSES; i++)
		if (fork() == 0) {
			disk_open(dir);
			for (int k = 0; k < TRIES; k++)
				if (disk_take(BYTES, DISK_ORDINARY)) {
					taken[i] += BYTES;
					assert_true(content().held <= 64 * MIB + PROCESSES * BYTES);
					if (k % 3 == 0) {
						disk_give(BYTES);
						taken[i] -= BYTES;
					}
				}
			_exit(0);
		}
	while (wait(&status) > 0)
		assert_int_equal(status, 0);
	for (int i = 0; i < PROCESSES; i++)
		sum += taken[i];
	assert_int_equal(content().held, sum);
	assert_in_range(sum, 56 * MIB - PROCESSES * BYTES, 56 * MIB);
	munmap(taken, 4096);
}

/* A file that is no account is neither used nor changed: this process counts alone. */
static void counts_alone(void)
{
	disk_open(dir);
	assert_int_equal(disk_bytes(), 0);
	assert_int_equal(disk_bound(), 64 * MIB);
	assert_true(disk_take(56 * MIB, DISK_ORDINARY));
	assert_false(disk_take(MIB, DISK_ORDINARY));
	disk_close();
}

static void test_damaged(void **state)
{
	struct trace_disk d = {.version = 7};
	char page[TRACE_DISK_BYTES], path[128], other[128];

	memset(page, 0xee, sizeof(page));
	put(TRACE_DISK_NAME, page, sizeof(page));
	counts_alone();
	assert_int_equal(content().bound, 0xeeeeeeeeeeeeeeeeull);
	memcpy(&d.magic, TRACE_DISK_MAGIC, 8);
	put(TRACE_DISK_NAME, &d, sizeof(d));
	counts_alone();
	d.version = TRACE_DISK_VERSION;
	d.bound = UINT64_MAX;
	put(TRACE_DISK_NAME, &d, sizeof(d));
	counts_alone();
	path_of(path, TRACE_DISK_NAME);
	unlink(path);
	path_of(other, "other");
	put("other", page, 0);
	assert_int_equal(symlink(other, path), 0);
	counts_alone();
	unlink(path);
	assert_int_equal(link(other, path), 0);
	counts_alone();
	unlink(path);
	mkdir(path, 0700);
	counts_alone();
	rmdir(path);
}

/* The next process completes a file whose creator was killed, or that was cut. */
static void test_unfinished(void **state)
{
	static const char zeros[TRACE_DISK_BYTES];

	for (size_t n = 0; n <= sizeof(zeros); n += 512) {
		put(TRACE_DISK_NAME, zeros, n);
		disk_open(dir);
		assert_int_equal(disk_bytes(), TRACE_DISK_BYTES);
		assert_true(disk_take(MIB, DISK_ORDINARY));
		assert_int_equal(content().held, MIB);
		disk_close();
	}
}

/* A process without room notices removed traces; not each process counts again. */
static void test_recount(void **state)
{
	static const char bytes[8192];

	disk_open(dir);
	assert_true(disk_take(64 * MIB, DISK_LAST));
	disk_close();
	put("1.0.whyoom", bytes, sizeof(bytes));
	put("small.0.whyooms", bytes, sizeof(bytes));
	put("other", bytes, sizeof(bytes));
	disk_open(dir);
	assert_in_range(content().held, 0, 16384);
	assert_true(disk_take(59 * MIB, DISK_START));
	disk_close();
	disk_open(dir);
	assert_in_range(content().held, 59 * MIB, 59 * MIB + 16384);
}

static void test_small_hints(void **state)
{
	const uint64_t key = 0x123456789abcdef0;
	uint32_t at;

	disk_open(dir);
	assert_int_equal(disk_small_file(), 0);
	assert_false(disk_small_base(0, key, &at));
	disk_small_set_base(0, key, 77);
	assert_true(disk_small_base(0, key, &at));
	assert_int_equal(at, 77);
	assert_false(disk_small_base(1, key, &at));
	assert_false(disk_small_base(0, key + ((uint64_t)TRACE_SMALL_BASES << 44), &at));
	disk_small_next(0);
	disk_small_next(0); /* another process saw it full, too */
	assert_int_equal(disk_small_file(), 1);
}

static void test_tidy(void **state)
{
	char path[128];

	disk_open(dir);
	put("other", "", 0);
	disk_tidy(top);
	path_of(path, TRACE_DISK_NAME);
	assert_int_equal(access(path, F_OK), 0);
	path_of(path, "other");
	unlink(path);
	disk_tidy(top);
	assert_int_equal(rmdir(top), 0);
	assert_int_equal(mkdir(top, 0700), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_shares, begin, end),
	    cmocka_unit_test_setup_teardown(test_found_again, begin, end),
	    cmocka_unit_test_setup_teardown(test_default, begin, end),
	    cmocka_unit_test_setup_teardown(test_race, begin, end),
	    cmocka_unit_test_setup_teardown(test_damaged, begin, end),
	    cmocka_unit_test_setup_teardown(test_unfinished, begin, end),
	    cmocka_unit_test_setup_teardown(test_recount, begin, end),
	    cmocka_unit_test_setup_teardown(test_small_hints, begin, end),
	    cmocka_unit_test_setup_teardown(test_tidy, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
