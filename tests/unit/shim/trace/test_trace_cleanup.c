/* test_trace_cleanup.c - which traces are trivial, and what becomes of the earlier image's
 * trace. */
#include "../under.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim.h"
#include "trace/trace_cleanup.h"

static struct stack_start nowhere;

static bool after(unsigned blocks, uint64_t size, int error)
{
	struct note n;
	bool answer;

	assert_int_equal(under_begin(1 << 30), 0);
	n = note_enter(__builtin_return_address(0));
	for (unsigned i = 0; i < blocks; i++)
		note_alloc(n, TRACE_API_MALLOC, (void *)(0x1000 + 16ul * i), size, &nowhere);
	if (error)
		note_failed(n, &(struct note_failure){.error = error, .size = size}, &nowhere);
	note_leave(n);
	answer = trace_cleanup_trivial(under_path(), 0);
	under_end();
	return answer;
}

static void test_trivial(void **state)
{
	assert_true(after(0, 0, 0));
	assert_true(after(31, 100, 0));
	assert_false(after(32, 100, 0));
	assert_false(after(1, 65536, 0));
	assert_true(after(1, 65535, 0));
	assert_false(after(1, 100, ENOMEM));
	assert_false(after(100000, 8, 0));
	assert_false(trace_cleanup_trivial("/nonexistent/file", 0));
	assert_false(trace_cleanup_trivial("/etc/passwd", 0));
}

static void patch(size_t offset, const void *bytes, size_t n)
{
	int fd = open(under_path(), O_RDWR);

	assert_int_equal(pwrite(fd, bytes, n, (off_t)offset), n);
	close(fd);
}

static struct trace_header header(void)
{
	struct trace_header h;
	int fd = open(under_path(), O_RDONLY);

	assert_int_equal(read(fd, &h, sizeof(h)), sizeof(h));
	close(fd);
	return h;
}

static void test_former(void **state)
{
	uint64_t long_ago = 1;
	uint32_t other = 1;
	struct note n;

	/* ours and trivial: removed */
	assert_int_equal(under_begin(1 << 30), 0);
	assert_true(trace_cleanup_former(under_path()));
	assert_int_equal(access(under_path(), F_OK), -1);
	under_end();

	/* ours, with a large block: marked */
	assert_int_equal(under_begin(1 << 30), 0);
	n = note_enter(__builtin_return_address(0));
	note_alloc(n, TRACE_API_MALLOC, (void *)0x1000, 1 << 20, &nowhere);
	note_leave(n);
	assert_false(trace_cleanup_former(under_path()));
	assert_int_equal(header().end_how, TRACE_END_EXEC);
	under_end();

	/* of an earlier process with the same pid: left alone */
	assert_int_equal(under_begin(1 << 30), 0);
	patch(offsetof(struct trace_header, start_mono_ns), &long_ago, 8);
	assert_false(trace_cleanup_former(under_path()));
	assert_int_equal(header().end_how, TRACE_END_NONE);
	under_end();

	/* of another process */
	assert_int_equal(under_begin(1 << 30), 0);
	patch(offsetof(struct trace_header, pid), &other, 4);
	assert_false(trace_cleanup_former(under_path()));
	under_end();
}

/* Whatever the file contains, reading stays within its bounds. */
static void test_garbage(void **state)
{
	srand(1);
	for (int round = 0; round < 300; round++) {
		struct note n;

		assert_int_equal(under_begin(1 << 30), 0);
		n = note_enter(__builtin_return_address(0));
		note_alloc(n, TRACE_API_MALLOC, (void *)0x1000, 5, &nowhere);
		note_leave(n);
		for (int i = 0; i < 20; i++) {
			uint8_t byte = (uint8_t)rand();

			patch(65536 + (size_t)rand() % 200, &byte, 1);
		}
		trace_cleanup_trivial(under_path(), 0);
		under_end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_trivial),
	    cmocka_unit_test(test_former),
	    cmocka_unit_test(test_garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
