/* What each number of a sentence means, in many wordings. */
#include "../../util/unit.h"

#include <string.h>

#include "explain/claim/amounts.h"

#define MiB(n) ((uint64_t)(n) << 20)
#define GiB(n) ((uint64_t)(n) << 30)

/* 0: the sentence does not say it. */
static void means(const char *line, uint64_t asked, uint64_t used, uint64_t limit, uint64_t left)
{
	static struct lexemes l;
	struct amounts a = {0};
	uint64_t expected[] = {asked, used, limit, left};

	lexemes_read(&l, line, strlen(line));
	amounts_read(&a, &l, 0, l.count);
	for (size_t i = 0; i < 4; i++)
		if ((a.said[i] ? a.bytes[i] : 0) != expected[i])
			fail_msg("%s: number %zu is %llu, not %llu", line, i,
			    a.said[i] ? (unsigned long long)a.bytes[i] : 0,
			    (unsigned long long)expected[i]);
}

static void test_words_before(void **state)
{
	means("failed to allocate 512 MiB", MiB(512), 0, 0, 0);
	means("limit: 2 GiB, used: 1 GiB", 0, GiB(1), GiB(2), 0);
	means("buffer of size 2830172160 refused", 2830172160, 0, 0, 0);
	means("used: 3120562176, max: 3132096512", 0, 3120562176, 3132096512, 0);
	means("would use 4 GiB (attempt to allocate chunk of 1 MiB), maximum: 3 GiB", MiB(1),
	    GiB(4), GiB(3), 0);
	(void)state;
}

static void test_words_behind(void **state)
{
	means("10 GiB total capacity; 2 GiB already allocated; 1 GiB free", 0, GiB(2), GiB(10),
	    GiB(1));
	means("needs 24 GB but only 16 GB are available", GiB(24), 0, 0, GiB(16));
	means("65536 bytes requested, 117717552 currently allocated, 134217728 bytes in budget",
	    65536, 117717552, 134217728, 0);
	means("memory limit of 2 GiB reached", 0, 0, GiB(2), 0);
	means("held 8 GiB plus alloc size: 1 GiB is more than total mem size: 8 GiB", GiB(1),
	    GiB(8), GiB(8), 0);
	(void)state;
}

static void test_pairs(void **state)
{
	means("requires 4 buffers, set to 8192 of 32768 bytes each", 0, 0, 0, 0);
	means("out of memory: fetched (12/301204)", 0, 0, 0, 0);
	means("==41031==ERROR: allocation failed", 0, 0, 0, 0);
	means("no room for 64 MiB in 8 banks, each bank needs to store 8 MiB, but bank size is "
	      "only 1 GiB (free: 256 MiB, largest free block: 4 MiB)",
	    MiB(8), 0, GiB(1), MiB(256));
	means("12 GB of 11 GB physical memory used", 0, GiB(12), GiB(11), 0);
	means("(3 GiB / 4 GiB)", 0, GiB(3), GiB(4), 0);
	means("would be [1022127656/974.7mb], larger than the limit of [1020054732/972.7mb]", 0,
	    1022127656, 1020054732, 0);
	means("free is 20 GiB, less than the sum of weights (size 6 GiB) and buffer (size 15 GiB)",
	    GiB(21), 0, 0, GiB(20));
	(void)state;
}

static void test_roles_of_sentences(void **state)
{
	means("attempted to grow the heap from 240 MiB to 288 MiB", MiB(288), MiB(240), 0, 0);
	means("memory left in process limit=6 GB, limit=10 GB", 0, 0, GiB(10), GiB(6));
	means("the maximum size of one buffer is 17179869184 bytes", 0, 0, GiB(16), 0);
	means("needs 24 GB of memory, found 16 GB", GiB(24), 0, GiB(16), 0);
	means("needs 24 GB, 16 GB VRAM", GiB(24), 0, GiB(16), 0);
	means("worker: memory 1200MB over limit 1024MB", 0, MiB(1200), MiB(1024), 0);
	means("VRAM 12/11 GB", 0, GiB(12), GiB(11), 0);
	means("Unable to hotplug 16 GiB memory", GiB(16), 0, 0, 0);
	(void)state;
}

/* Counts of other things, ports, process ids and addresses. */
static void test_no_amounts(void **state)
{
	means("task 3 lost (TID 22077): out of memory", 0, 0, 0, 0);
	means("limit of 16384 tokens", 0, 0, 0, 0);
	means("used by pid 50231 on host:22000, requested 40000 rows", 0, 0, 0, 0);
	means("used at 0x7fa4c6800000", 0, 0, 0, 0);
	means("currently 2048 of 32768 bytes each", 0, 0, 0, 0);
	means("failed alloc size=-1.00 B", 0, 0, 0, 0);
	means("allocating tensor with shape[128,128,109,109]", 0, 0, 0, 0);
	means("limit maxTokensInCache (29184)", 0, 0, 0, 0);
	means("sim(35213,0x10c7075c0) malloc: refused", 0, 0, 0, 0);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_words_before),
	    cmocka_unit_test(test_words_behind),
	    cmocka_unit_test(test_pairs),
	    cmocka_unit_test(test_roles_of_sentences),
	    cmocka_unit_test(test_no_amounts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
