/* Files of a cgroup as kernels write them, with parts missing, and damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "watch/signs/pressure.h"

static char directory[] = "/tmp/whyoom-pressure-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	if (!text) {
		unlink(path);
		return;
	}
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void put_all(const char *pressure, const char *events, const char *stat)
{
	put("memory.pressure", pressure);
	put("memory.events", events);
	put("memory.stat", stat);
}

static void test_whole(void **state)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct pressure p;

	put_all("some avg10=12.50 avg60=4.00 avg300=1.00 total=2500000\n"
		"full avg10=1.25 avg60=0.40 avg300=0.10 total=500000\n",
	    "low 0\nhigh 5796\nmax 3\noom 0\noom_kill 0\n",
	    "anon 4096\npgscan 300\npgsteal 200\npgscan_kswapd 100\nworkingset_refault_anon 5\n"
	    "workingset_refault_file 7\n");
	assert_true(pressure_read(directory, &p));
	assert_true(p.stalls_known && p.throttled_known && p.reclaim_known);
	assert_float_equal(p.some, 0.125, 1e-9);
	assert_float_equal(p.full, 0.0125, 1e-9);
	assert_float_equal(p.some_seconds, 2.5, 1e-9);
	assert_float_equal(p.full_seconds, 0.5, 1e-9);
	assert_int_equal(p.throttled, 5796);
	assert_int_equal(p.scanned_bytes, 300 * page);
	assert_int_equal(p.reclaimed_bytes, 200 * page);
	assert_int_equal(p.refault_bytes, 12 * page);
	(void)state;
}

static void test_parts(void **state)
{
	struct pressure p = {.throttled = 7};

	put_all(NULL, NULL, NULL);
	assert_false(pressure_read(directory, &p));
	assert_int_equal(p.throttled, 0);
	/* PSI may be off; an old kernel has one count of refaults. */
	put_all(NULL, "high 1\n", "workingset_refault 3\n");
	assert_true(pressure_read(directory, &p));
	assert_false(p.stalls_known);
	assert_true(p.throttled_known && p.reclaim_known);
	assert_int_equal(p.refault_bytes, 3 * (uint64_t)sysconf(_SC_PAGESIZE));
	assert_false(pressure_read("/nonexistent", &p));
	(void)state;
}

static void test_damaged(void **state)
{
	static const char *const bad[] = {"", "\n\n", "some\nfull\n",
	    "some avg10=nan total=1\nfull avg10=1 total=1\n",
	    "some avg10=-1 total=1\nfull avg10=1 total=1\n",
	    "some avg10=101 total=1\nfull avg10=1 total=1\n", "some avg10=1.00 total=1\n",
	    "some avg10=1.00 total=x\nfull avg10=1.00\n"};
	struct pressure p;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		put_all(bad[i], "high\nhigh x\n", "pgscan\nother 1\n");
		assert_false(pressure_read(directory, &p));
	}
	(void)state;
}

static int setup(void **state)
{
	(void)state;
	return mkdtemp(directory) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	put_all(NULL, NULL, NULL);
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_whole),
	    cmocka_unit_test(test_parts), cmocka_unit_test(test_damaged)};
	return cmocka_run_group_tests(tests, setup, teardown);
}
