/* test_rights.c - recording continues through mappings when the file can no longer be opened. */
#include "../under.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/rights.h"
#include "trace/trace_file.h"

static uint64_t blocks_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

static bool claim(struct file_chunk *c, uint32_t bytes, enum trace_drop *why)
{
	return trace_file_claim(c, TRACE_CHUNK_EVENTS, bytes, 1, 2, 3, false, why);
}

/* Make the path lead elsewhere, as chroot does. */
static void give_up(char away[4200])
{
	snprintf(away, 4200, "%s.away", under_path());
	assert_true(rights_before(TRACE_RIGHT_ROOT, -1));
	assert_int_equal(rename(under_path(), away), 0);
	rights_given_up(TRACE_RIGHT_ROOT);
	assert_int_equal(trace_file_open(), TRACE_FILE_MAPPED);
}

static void test_goes_on(void **state)
{
	struct file_chunk a, b, c;
	struct trace_chunk read;
	enum trace_drop why;
	char away[4200];
	uint64_t held;

	assert_int_equal(under_begin(64 << 20), 0);
	assert_true(claim(&a, 65536, &why));
	give_up(away);
	held = blocks_of(away);
	assert_true(claim(&b, 1 << 20, &why));
	assert_true(claim(&c, 65536, &why));
	assert_int_equal(b.offset, a.offset + 65536);
	assert_int_equal(c.offset, b.offset + (1 << 20));
	assert_true(blocks_of(away) >= held + (1 << 20) + 65536); /* on disk, not a gap */
	memset(b.chunk + 1, 7, (1 << 20) - sizeof(*b.chunk));
	assert_true(trace_file_read(TRACE_FILE_MAPPED, c.offset, &read, sizeof(read)));
	assert_int_equal(read.magic, TRACE_CHUNK_MAGIC);
	assert_int_equal(read.sequence, 3);
	trace_file_unmap(&c);
	assert_true(trace_file_map(&c));
	assert_int_equal(c.chunk->sequence, 3);
	trace_file_seal(&c);
	assert_true(trace_file_read(TRACE_FILE_MAPPED, c.offset, &read, sizeof(read)));
	assert_int_equal(read.sealed, 1);
	/* space is given back and used again */
	trace_file_seal(&b);
	assert_true(trace_file_can_punch(TRACE_FILE_MAPPED));
	held = blocks_of(away);
	assert_true(trace_file_punch(TRACE_FILE_MAPPED, b.offset, 1 << 20));
	assert_int_equal(blocks_of(away), held - (1 << 20));
	assert_true(claim(&c, 1 << 20, &why));
	assert_int_equal(c.offset, b.offset);
	assert_int_equal(blocks_of(away), held);
	assert_int_equal(((uint8_t *)c.chunk)[4096], 0);
	trace_file_unmap(&c);
	assert_false(trace_file_read(TRACE_FILE_MAPPED, rights_file_end(), &read, sizeof(read)));
	assert_int_not_equal(trace_file_header->rights.ticks[TRACE_RIGHT_ROOT], 0);
	assert_int_equal(trace_file_header->rights.stopped_ticks, 0);
	assert_int_equal(rename(away, under_path()), 0);
	trace_file_unmap(&a);
	under_end();
}

/* The file grows only as far as the process may write and can map. */
static void test_file_limit(void **state)
{
	struct rlimit old, low = {1 << 20, 1 << 20};
	struct file_chunk c;
	enum trace_drop why;
	char away[4200];

	assert_int_equal(under_begin(64 << 20), 0);
	getrlimit(RLIMIT_FSIZE, &old);
	low.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_FSIZE, &low);
	assert_true(rights_before(TRACE_RIGHT_ROOT, -1));
	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(rights_file_end(), 0); /* less than a chunk */
	under_end();

	assert_int_equal(under_begin(64 << 20), 0);
	low.rlim_cur = 4 << 20;
	setrlimit(RLIMIT_FSIZE, &low);
	give_up(away);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(rights_file_end(), 4 << 20);
	for (int i = 0; i < 3; i++) {
		assert_true(claim(&c, 1 << 20, &why));
		trace_file_unmap(&c);
	}
	assert_false(claim(&c, 1 << 20, &why));
	assert_int_equal(why, TRACE_DROP_NO_SPACE);
	assert_int_equal(rename(away, under_path()), 0);
	under_end();
}

/* A file that cannot be opened, for a reason we did not see, is counted; that ends when it can be
 * opened. */
static void test_blame(void **state)
{
	assert_int_equal(under_begin(64 << 20), 0);
	assert_false(rights_blamed(-28 /* ENOSPC */));
	assert_false(rights_blamed(-2 /* ENOENT */));
	assert_true(rights_blamed(-13 /* EACCES */));
	rights_stopped();
	assert_int_not_equal(trace_file_header->rights.stopped_ticks, 0);
	assert_int_equal(trace_file_header->rights.stopped, TRACE_RIGHT_UNKNOWN);
	rights_go_on();
	assert_int_equal(trace_file_header->rights.stopped_ticks, 0);
	under_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_blame),
	    cmocka_unit_test(test_goes_on),
	    cmocka_unit_test(test_file_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
