#include "../events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/directory/account.h"

static char dir[64];

static int make_dir(void **state)
{
	strcpy(dir, "/tmp/whyoom-account-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char command[100];

	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static struct trace_account after(const void *bytes, size_t n)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/" TRACE_DISK_NAME, dir);
	f = fopen(path, "w");
	fwrite(bytes, 1, n, f);
	fclose(f);
	return account_read(dir);
}

static void test_read(void **state)
{
	struct trace_disk d = {.version = TRACE_DISK_VERSION, .bound = 1000, .held = 300};
	struct trace_account a;

	assert_false(account_read(dir).known);
	assert_false(account_read("/nonexistent").known);
	memcpy(&d.magic, TRACE_DISK_MAGIC, 8);
	a = after(&d, sizeof(d));
	assert_true(a.known);
	assert_int_equal(a.bound, 1000);
	assert_int_equal(a.held, 300);
	d.held = -5; /* more was given back than counted */
	assert_int_equal(after(&d, sizeof(d)).held, 0);
	for (size_t n = 0; n < offsetof(struct trace_disk, counted_s); n++)
		assert_false(after(&d, n).known);
	d.bound = 0;
	assert_false(after(&d, sizeof(d)).known);
	d.bound = UINT64_MAX;
	assert_false(after(&d, sizeof(d)).known);
	d.bound = 1;
	d.version = 2;
	assert_false(after(&d, sizeof(d)).known);
	d.version = TRACE_DISK_VERSION;
	d.magic++;
	assert_false(after(&d, sizeof(d)).known);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_read, make_dir, remove_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
