/* test_small.c - a process's small trace moves into its directory's file of small traces, once,
 * and only if no process looks for it by name. */
#include "../under.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/xxh64.h"
#include "shim.h"
#include "trace/definitions.h"
#include "trace/disk.h"
#include "trace/small.h"
#include "trace/trace_file.h"

static char small[128];

static int end(void **state)
{
	under_end();
	unlink(small);
	disk_close();
	return 0;
}

static int begin(void **state)
{
	assert_int_equal(under_begin(1 << 30), 0);
	snprintf(small, sizeof(small), "%s/small.0" TRACE_SMALL_SUFFIX, under_directory());
	return 0;
}

/* A process that recorded some blocks and has ended. */
static void record(unsigned blocks)
{
	definitions_info("exe", "/usr/bin/something");
	for (uintptr_t i = 1; i <= blocks; i++) {
		struct note n = note_enter(__builtin_return_address(0));

		note_alloc(n, TRACE_API_MALLOC, (void *)(i << 4), 24, &(struct stack_start){0});
		note_leave(n);
	}
	trace_file_header->end_how = TRACE_END_EXIT;
}

static uint64_t size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : (uint64_t)st.st_size;
}

static struct trace_small head_at(uint64_t offset, uint8_t **record)
{
	struct trace_small h;
	int fd = open(small, O_RDONLY);

	assert_int_equal(pread(fd, &h, sizeof(h), (off_t)offset), sizeof(h));
	assert_memory_equal(h.magic, TRACE_SMALL_MAGIC, 8);
	*record = malloc(h.bytes);
	assert_int_equal(pread(fd, *record, h.bytes, (off_t)offset), h.bytes);
	close(fd);
	return h;
}

static void test_folded(void **state)
{
	int64_t before;
	struct trace_small h, second;
	uint8_t *bytes;
	uint64_t first;

	record(200);
	assert_true(disk_take(1, DISK_LAST)); /* an account exists */
	before = (int64_t)disk_room(DISK_LAST);
	assert_true(small_fold(under_directory(), under_path()));
	assert_int_equal(access(under_path(), F_OK), -1);
	h = head_at(0, &bytes);
	first = size_of(small);
	assert_int_equal(h.bytes, first);
	assert_int_equal(h.pid, getpid());
	assert_int_equal(h.start_real_ns, trace_file_header->start_real_ns);
	assert_true(h.times > 200); /* and SHARED_THREAD */
	assert_int_equal(h.coded, 0);
	assert_int_equal(h.file_bytes, 3 * TRACE_SLOT_BYTES);
	assert_true(h.quantum < 16);
	assert_memory_equal(bytes + sizeof(h), trace_file_header, TRACE_SMALL_HEADER_BYTES);
	memset(bytes + offsetof(struct trace_small, checksum), 0, 8);
	assert_int_equal(xxh64(bytes, h.bytes), h.checksum);
	free(bytes);
	assert_int_equal(disk_room(DISK_LAST), before + 3 * TRACE_SLOT_BYTES - h.bytes);

	/* the next trace is coded by its difference */
	under_end();
	assert_int_equal(under_begin(1 << 30), 0);
	record(201);
	assert_true(small_fold(under_directory(), under_path()));
	second = head_at(first, &bytes);
	free(bytes);
	assert_int_equal(second.coded, 1);
	assert_int_equal(second.base, 0);
	assert_int_equal(second.key, h.key);
	assert_true(second.bytes < h.bytes / 3);
	assert_int_equal(size_of(small), first + second.bytes);
}

static void stays(void)
{
	assert_false(small_fold(under_directory(), under_path()));
	assert_int_equal(access(under_path(), F_OK), 0);
	assert_int_equal(size_of(small), 0);
}

static void test_stays(void **state)
{
	record(200);
	trace_file_header->end_how = TRACE_END_NONE;
	stays();
	trace_file_header->end_how = TRACE_END_SIGNAL;
	stays();
	trace_file_header->end_how = TRACE_END_EXIT;
	trace_file_header->dropped[TRACE_DROP_SIGNAL] = 1;
	stays();
	trace_file_header->dropped[TRACE_DROP_SIGNAL] = 0;
	for (unsigned bit = 0; bit < 5; bit++) {
		trace_file_header->flags = 1u << bit;
		if (trace_file_header->flags != TRACE_FLAG_FORKED)
			stays();
	}
	trace_file_header->flags = 0;
	trace_file_header->checkpoint[1].number = 1;
	stays();
	trace_file_header->checkpoint[1].number = 0;
	assert_true(small_fold(under_directory(), under_path()));
}

/* Not if the file cannot be appended to, or belongs to another user. */
static void test_no_file(void **state)
{
	record(200);
	mkdir(small, 0700);
	assert_false(small_fold(under_directory(), under_path()));
	rmdir(small);
	assert_int_equal(symlink("/dev/null", small), 0);
	assert_false(small_fold(under_directory(), under_path()));
	unlink(small);
	assert_false(small_fold("/nonexistent", under_path()));
	assert_false(small_fold(under_directory(), "/nonexistent"));
	assert_int_equal(access(under_path(), F_OK), 0);
}

static void test_too_large(void **state)
{
	record(60000);
	stays();
}

static void test_next_file(void **state)
{
	char next[128];

	record(200);
	close(open(small, O_WRONLY | O_CREAT, 0600));
	assert_int_equal(truncate(small, TRACE_SMALL_FILE_MAX), 0);
	assert_true(small_fold(under_directory(), under_path()));
	snprintf(next, sizeof(next), "%s/small.1" TRACE_SMALL_SUFFIX, under_directory());
	assert_int_equal(size_of(small), TRACE_SMALL_FILE_MAX);
	assert_true(size_of(next) > sizeof(struct trace_small));
	unlink(next);
}

static void test_alone(void **state)
{
	assert_true(small_alone());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_folded, begin, end),
	    cmocka_unit_test_setup_teardown(test_stays, begin, end),
	    cmocka_unit_test_setup_teardown(test_no_file, begin, end),
	    cmocka_unit_test_setup_teardown(test_too_large, begin, end),
	    cmocka_unit_test_setup_teardown(test_next_file, begin, end),
	    cmocka_unit_test_setup_teardown(test_alone, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
