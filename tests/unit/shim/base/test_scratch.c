/* test_scratch.c - held memory is there when the kernel refuses everything, is zero each time
 * and grows only by the difference; pieces that do not fit are requested. */
#include "../under.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/scratch.h"
#include "base/sys.h"

#define MIB ((size_t)1 << 20)

static struct rlimit was;

static size_t address_space(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	assert_int_equal(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	return pages * (size_t)getpagesize();
}

/* Allow `more` bytes of address space. */
static void limit(size_t more)
{
	struct rlimit tight;

	assert_int_equal(getrlimit(RLIMIT_AS, &was), 0);
	tight = was;
	tight.rlim_cur = address_space() + more;
	assert_int_equal(setrlimit(RLIMIT_AS, &tight), 0);
}

static void unlimit(void)
{
	assert_int_equal(setrlimit(RLIMIT_AS, &was), 0);
}

static void zeros(const uint8_t *p, size_t bytes)
{
	assert_non_null(p);
	for (size_t i = 0; i < bytes; i++)
		assert_int_equal(p[i], 0);
}

static size_t resident(const struct scratch *h)
{
	unsigned char page[4096];
	size_t n = 0;

	assert_int_equal(mincore(h->base, h->bytes, page), 0);
	for (size_t i = 0; i < h->bytes / 4096; i++)
		n += page[i] & 1;
	return n * 4096;
}

static void test_refused(void **state)
{
	struct scratch h = {0};
	uint8_t *a, *b, *c;
	size_t before = sys_own_bytes();

	assert_true(scratch_ready(&h, 3 * MIB, MIB));
	assert_int_equal(sys_own_bytes(), before + 3 * MIB);
	assert_in_range(resident(&h), MIB, MIB + MIB / 2);
	limit(0);
	for (int round = 0; round < 3; round++) {
		zeros(a = scratch_take(&h, MIB + 1), MIB + 1);
		zeros(b = scratch_take(&h, MIB), MIB);
		assert_true(b >= a + MIB + 1);
		c = scratch_take(&h, MIB);
		assert_null(c); /* one page too much */
		assert_true(h.refused);
		memset(a, 0xaa, MIB + 1);
		memset(b, 0xaa, MIB);
		scratch_end(&h);
		assert_false(h.refused);
		assert_in_range(resident(&h), MIB, MIB + MIB / 2);
	}
	assert_false(scratch_ready(&h, 4 * MIB, MIB));
	zeros(scratch_take(&h, 3 * MIB), 3 * MIB); /* the memory held before remains */
	scratch_end(&h);
	unlimit();
	limit(MIB);
	assert_true(scratch_ready(&h, 4 * MIB, 0)); /* only the difference */
	unlimit();
	zeros(scratch_take(&h, 4 * MIB), 4 * MIB);
	scratch_end(&h);
	scratch_forget(&h);
	assert_int_equal(sys_own_bytes(), before);
}

static void test_more(void **state)
{
	enum { PIECE = 73728 }; /* larger than sys_pages_free() keeps */
	struct scratch h = {0};
	size_t before = sys_own_bytes();

	for (int round = 0; round < 3; round++) {
		for (unsigned i = 0; i < SCRATCH_MORE; i++)
			zeros(scratch_take(&h, PIECE - 100), PIECE - 100);
		assert_null(scratch_take(&h, 5000));
		assert_int_equal(sys_own_bytes(), before + SCRATCH_MORE * PIECE);
		scratch_end(&h);
		assert_int_equal(sys_own_bytes(), before);
	}
	/* excess memory is given back */
	assert_true(scratch_ready(&h, 64 * MIB, 0));
	assert_true(scratch_ready(&h, MIB, 0));
	assert_int_equal(sys_own_bytes(), before + MIB);
	assert_true(scratch_ready(&h, MIB / 2, 0));
	assert_int_equal(h.bytes, MIB);
	scratch_forget(&h);
	assert_int_equal(sys_own_bytes(), before);
}

/* A host that locks all memory: nothing is given back, and it is zero all the same. */
static void test_locked(void **state)
{
	struct scratch h = {0};

	assert_true(scratch_ready(&h, 64 << 10, 0));
	if (mlock(h.base, h.bytes) == 0) {
		memset(scratch_take(&h, 64 << 10), 0xaa, 64 << 10);
		scratch_end(&h);
		zeros(scratch_take(&h, 64 << 10), 64 << 10);
		scratch_end(&h);
	}
	scratch_forget(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_more),
	    cmocka_unit_test(test_locked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
