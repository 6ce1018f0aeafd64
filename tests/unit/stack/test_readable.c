/* test_readable.c - compares readable ranges with mappings: pages with and without access in
 * every order, unmapped addresses, and protections that change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stack/readable.h"

#define PAGES 400u

static uintptr_t base, page;
static bool can[PAGES];

static uint64_t dice(uint64_t below)
{
	static uint64_t seed = 2463534242u;

	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

static int setup(void **state)
{
	page = (uintptr_t)sysconf(_SC_PAGESIZE);
	base = (uintptr_t)mmap(
	    NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(can, true, sizeof(can));
	return base == (uintptr_t)MAP_FAILED;
}

static int teardown(void **state)
{
	return munmap((void *)base, PAGES * page);
}

static void protect(unsigned at, unsigned count, bool readable)
{
	for (unsigned i = at; i < at + count && i < PAGES; i++) {
		can[i] = readable;
		assert_int_equal(
		    mprotect((void *)(base + i * page), page, readable ? PROT_READ : PROT_NONE), 0);
	}
	readable_forget();
}

static void pages(void **state)
{
	protect(7, 2, false);
	assert_true(readable_page(base + 7 * page - 1));
	assert_false(readable_page(base + 7 * page));
	assert_false(readable_page(base + 9 * page - 1));
	assert_true(readable_page(base + 9 * page));
	assert_false(readable_page(0));
	assert_false(readable_page(4095)); /* page zero, whatever is there */
	assert_false(readable_page(UINTPTR_MAX));
	assert_false(readable_page((uintptr_t)1 << 62));
	assert_true(readable_page((uintptr_t)&page));
	assert_true(readable_page((uintptr_t) "text"));
}

static void words(void **state)
{
	struct readable r = {0};

	protect(10, 1, false);
	readable_start(&r, base + 3 * page);
	for (uintptr_t a = base; a < base + 10 * page; a += 8)
		assert_true(readable_word(&r, a));
	for (unsigned i = 1; i < 8; i++) /* not aligned: never a word of a stack */
		assert_false(readable_word(&r, base + 3 * page + i));
	assert_false(readable_word(&r, base + 10 * page));
	assert_false(readable_word(&r, base + 11 * page - 8));
	assert_false(readable_word(&r, 0));
	assert_false(readable_word(&r, UINTPTR_MAX - 7));
	assert_false(readable_word(&r, (uintptr_t)1 << 63));
}

/* A walk leads from a signal handler's stack to another one beyond a guard page, and back. */
static void beyond_a_hole(void **state)
{
	struct readable r = {0};

	protect(20, 1, false);
	protect(30, 1, false);
	readable_start(&r, base + 15 * page);
	assert_true(readable_word(&r, base + 19 * page));
	assert_false(readable_word(&r, base + 20 * page));
	assert_true(readable_word(&r, base + 25 * page));
	assert_true(readable_word(&r, base + 35 * page));
	assert_true(readable_word(&r, base + 15 * page));
	assert_false(readable_word(&r, base + 30 * page));
}

/* After the host changed its mappings, ranges are found anew. */
static void forgets(void **state)
{
	struct readable r = {0};

	readable_start(&r, base + 50 * page);
	assert_true(readable_word(&r, base + 55 * page));
	protect(55, 1, false);
	readable_start(&r, base + 50 * page);
	assert_false(readable_word(&r, base + 55 * page));
	protect(55, 1, true);
	readable_start(&r, base + 50 * page);
	assert_true(readable_word(&r, base + 55 * page));
}

/* Random protections and walks: the result is always right. */
static void random_walks(void **state)
{
	struct readable r = {0};

	for (int round = 0; round < 300; round++) {
		uint64_t sp;

		for (int i = 0; i < 8; i++)
			protect((unsigned)dice(PAGES), 1 + (unsigned)dice(20), dice(3));
		for (int walk = 0; walk < 5; walk++) {
			do
				sp = dice(PAGES);
			while (!can[sp]); /* a stack in use */
			readable_start(&r, base + sp * page + 8 * dice(page / 8));
			for (int i = 0; i < 40; i++) {
				uint64_t at = dice(4) ? (sp + dice(40)) % PAGES : dice(PAGES);

				assert_int_equal(
				    readable_word(&r, base + at * page + 8 * dice(page / 8)),
				    can[at]);
			}
		}
	}
}

#define mapped_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    mapped_test(pages),
	    mapped_test(words),
	    mapped_test(beyond_a_hole),
	    mapped_test(forgets),
	    mapped_test(random_walks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
