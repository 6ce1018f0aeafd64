/* test_trace_file.c - ranges of the file: reserved, given back, used again, refused. */
#include "../under.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/trace_file.h"

static bool claim(struct file_chunk *c, uint32_t bytes, enum trace_drop *why)
{
	return trace_file_claim(c, TRACE_CHUNK_EVENTS, bytes, 1, 2, 3, false, why);
}

static void test_claim(void **state)
{
	struct file_chunk a, b;
	enum trace_drop why;
	struct stat st;

	assert_int_equal(under_begin(1 << 30), 0);
	assert_true(claim(&a, 65536, &why));
	assert_true(claim(&b, 1 << 20, &why));
	assert_int_equal(a.offset, 65536);
	assert_int_equal(b.offset, 131072);
	assert_int_equal(a.chunk->magic, TRACE_CHUNK_MAGIC);
	assert_int_equal(a.chunk->bytes, 65536);
	assert_int_equal(a.chunk->tid, 2);
	assert_int_equal(stat(under_path(), &st), 0);
	assert_int_equal(st.st_size, 131072 + (1 << 20));
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_true(st.st_blocks * 512 >= st.st_size - 65536); /* on disk, not a gap */
	trace_file_unmap(&a);
	assert_true(trace_file_map(&a));
	assert_int_equal(a.chunk->sequence, 3);
	trace_file_seal(&a);
	trace_file_seal(&b);
	assert_null(b.chunk);
	under_end();
}

static void test_holes(void **state)
{
	struct file_chunk a, b;
	enum trace_drop why;

	assert_int_equal(under_begin(1 << 30), 0);
	assert_true(claim(&a, 1 << 20, &why));
	trace_file_add_gap(a.offset + 65536, 131072);
	assert_true(claim(&b, 65536, &why));
	assert_int_equal(b.offset, a.offset + 65536);
	trace_file_unmap(&b);
	assert_true(claim(&b, 131072, &why)); /* too large for the rest of it */
	assert_int_equal(b.offset, a.offset + (1 << 20));
	trace_file_unmap(&b);
	trace_file_unmap(&a);
	under_end();
}

static void test_file_limit(void **state)
{
	struct rlimit old, low = {1 << 20, 1 << 20};
	struct file_chunk c;
	enum trace_drop why;
	uint64_t before;

	assert_int_equal(under_begin(1 << 30), 0);
	getrlimit(RLIMIT_FSIZE, &old);
	low.rlim_max = old.rlim_max;
	signal(SIGXFSZ, SIG_DFL); /* the signal would end the test */
	setrlimit(RLIMIT_FSIZE, &low);
	before = trace_file_header->file_bytes;
	assert_false(claim(&c, 1 << 20, &why));
	assert_int_equal(why, TRACE_DROP_NO_SPACE);
	assert_int_equal(trace_file_header->file_bytes, before); /* given back */
	assert_true(claim(&c, 65536, &why));
	trace_file_unmap(&c);
	setrlimit(RLIMIT_FSIZE, &old);
	under_end();
}

static void test_no_descriptors(void **state)
{
	struct rlimit old, low;
	struct file_chunk c;
	enum trace_drop why;

	assert_int_equal(under_begin(1 << 30), 0);
	getrlimit(RLIMIT_NOFILE, &old);
	low = (struct rlimit){0, old.rlim_max};
	setrlimit(RLIMIT_NOFILE, &low);
	assert_false(claim(&c, 65536, &why));
	assert_int_equal(why, TRACE_DROP_NO_MEMORY);
	setrlimit(RLIMIT_NOFILE, &old);
	under_end();
}

/* Another file of the same name is not ours. */
static void test_replaced(void **state)
{
	struct file_chunk c;
	enum trace_drop why;
	char moved[300];
	int fd;

	assert_int_equal(under_begin(1 << 30), 0);
	snprintf(moved, sizeof(moved), "%s.moved", under_path());
	assert_int_equal(rename(under_path(), moved), 0);
	assert_false(claim(&c, 65536, &why));
	fd = open(under_path(), O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_false(claim(&c, 65536, &why));
	unlink(under_path());
	assert_int_equal(symlink(moved, under_path()), 0);
	assert_false(claim(&c, 65536, &why));
	unlink(under_path());
	assert_int_equal(rename(moved, under_path()), 0);
	assert_true(claim(&c, 65536, &why));
	trace_file_unmap(&c);
	under_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_claim),
	    cmocka_unit_test(test_holes),
	    cmocka_unit_test(test_file_limit),
	    cmocka_unit_test(test_no_descriptors),
	    cmocka_unit_test(test_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
