/* test_reserve.c - when the kernel refuses everything, tables and chunks still find room. */
#include "../under.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/reserve.h"
#include "base/sys.h"
#include "trace/trace_file.h"

#define SLOT ((size_t)TRACE_SLOT_BYTES)

static struct rlimit old;

static uint64_t virtual_size(void)
{
	char line[64] = "";
	unsigned long pages = 0;
	int fd = open("/proc/self/statm", O_RDONLY);

	assert_true(read(fd, line, sizeof(line) - 1) > 0);
	close(fd);
	sscanf(line, "%lu", &pages);
	return pages * (uint64_t)getpagesize();
}

/* Allow no more address space than the process has. */
static void nothing_left(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_AS, &old);
	limit = (struct rlimit){virtual_size(), old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	assert_ptr_equal(
	    mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), MAP_FAILED);
}

static void plenty(void)
{
	assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
}

static void test_pages(void **state)
{
	unsigned char *p[200];
	size_t before, taken = 0;

	reserve_init();
	nothing_left();
	before = sys_own_bytes();
	while (taken < 200 && (p[taken] = sys_pages(3 * 4096))) {
		for (int i = 0; i < 3 * 4096; i++)
			assert_int_equal(p[taken][i], 0);
		for (size_t k = 0; k < taken; k++)
			assert_true(p[taken] >= p[k] + 3 * 4096 || p[k] >= p[taken] + 3 * 4096);
		memset(p[taken++], 0xaa, 3 * 4096);
	}
	/* first the pages, then the ranges, 256 KiB and 512 KiB in pieces of 12 KiB */
	assert_in_range(taken, 50, 64);
	assert_int_equal(reserve_bytes(), 0);
	assert_int_equal(sys_own_bytes(), before + 8 * SLOT);
	sys_pages_free(p[7], 3 * 4096);
	assert_ptr_equal(sys_pages(2 * 4096), p[7]);
	assert_int_equal(p[7][0] | p[7][2 * 4096 - 1], 0);
	assert_null(sys_pages(1 << 20));
	plenty();
	/* memory from the kernel goes back to the kernel */
	p[0] = sys_pages(1 << 20);
	before = virtual_size();
	sys_pages_free(p[0], 1 << 20);
	assert_int_equal(virtual_size(), before - (1 << 20));
}

static void test_ranges(void **state)
{
	unsigned char *a, *b;
	uint64_t size;

	reserve_granted();
	assert_int_equal(reserve_bytes(), 8 * SLOT);
	size = virtual_size();
	a = reserve_take(2 * SLOT);
	b = reserve_take(SLOT);
	assert_non_null(a);
	assert_true(b >= a + 2 * SLOT || b + SLOT <= a);
	assert_int_equal(reserve_bytes(), 5 * SLOT);
	assert_null(reserve_take(64 * SLOT));
	/* kept ranges are inaccessible and take no more address space */
	assert_ptr_equal(mmap(a, 2 * SLOT, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
	    a);
	assert_true(reserve_keep(a, 2 * SLOT));
	reserve_give_back(b, SLOT);
	assert_int_equal(reserve_bytes(), 8 * SLOT);
	assert_int_equal(virtual_size(), size);
	/* enough: the kernel is not short */
	a = mmap(NULL, 16 * SLOT, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_false(reserve_keep(a, 16 * SLOT));
	reserve_refused();
	assert_true(reserve_keep(a, 16 * SLOT));
	assert_int_equal(reserve_bytes(), 24 * SLOT);
	assert_ptr_equal(reserve_take(16 * SLOT), a);
	reserve_give_back(a, 16 * SLOT);
	/* released when the kernel grants memory again */
	reserve_granted();
	assert_int_equal(reserve_bytes(), 8 * SLOT);
	/* a range that is gone is not put back */
	a = reserve_take(SLOT);
	munmap(a, SLOT);
	reserve_give_back(a, SLOT);
	assert_int_equal(reserve_bytes(), 7 * SLOT);
}

/* Chunk after chunk, each in the place of the previous one. */
static void test_chunks(void **state)
{
	struct file_chunk c, next;
	enum trace_drop why;
	uint64_t size;

	assert_int_equal(under_begin(1 << 30), 0);
	assert_true(trace_file_claim(&c, TRACE_CHUNK_EVENTS, 1 << 20, 1, 2, 0, false, &why));
	nothing_left();
	size = virtual_size();
	for (uint32_t i = 1; i < 100; i++) {
		uint32_t bytes = 1 << 20;

		if (!trace_file_claim(&next, TRACE_CHUNK_EVENTS, bytes, 1, 2, i, false, &why))
			assert_true(trace_file_claim(&next, TRACE_CHUNK_EVENTS,
			    TRACE_FIRST_CHUNK_BYTES, 1, 2, i, false, &why));
		next.chunk->committed = 8;
		trace_file_seal(&c);
		c = next;
		assert_in_range(virtual_size(), 0, size);
	}
	/* no range but its own */
	while (reserve_take(SLOT))
		;
	assert_false(trace_file_claim(
	    &next, TRACE_CHUNK_EVENTS, TRACE_FIRST_CHUNK_BYTES, 1, 2, 100, false, &why));
	assert_int_equal(why, TRACE_DROP_NO_MEMORY);
	assert_true(trace_file_seal_for_next(&c));
	assert_null(c.chunk);
	assert_true(trace_file_claim(
	    &next, TRACE_CHUNK_EVENTS, TRACE_FIRST_CHUNK_BYTES, 1, 2, 100, false, &why));
	plenty();
	/* nothing can be replaced below the present size: the chunk is unchanged */
	while (reserve_take(SLOT))
		;
	nothing_left();
	assert_int_equal(setrlimit(RLIMIT_AS, &(struct rlimit){1 << 20, old.rlim_max}), 0);
	assert_false(trace_file_seal_for_next(&next));
	assert_int_equal(next.chunk->sealed, 0);
	plenty();
	trace_file_unmap(&next);
	under_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_pages),
	    cmocka_unit_test(test_ranges),
	    cmocka_unit_test(test_chunks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
