/* The cgroup of a process, if it is the one that writes the trace. */
#include <stdlib.h>
#include <string.h>

#include "../../util/unit.h"
#include "../scratch.h"
#include "cmd/watch/target.h"

#define V2 "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
#define V1 "32 24 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
#define MAPS                                                                                       \
	"7f00-7f01 r-xp 00000000 08:01 12 /usr/lib/libc.so.6\n"                                    \
	"7f02-7f03 rw-s 00000000 08:01 99 /var/traces of a pod/7.0.whyoom\n"

static char *find(const char *trace)
{
	return target_cgroup(scratch(""), 7, trace);
}

static void the_process_that_writes_it(void **state)
{
	char *found;

	scratch_file("proc/7/cgroup", "0::/pod\n");
	scratch_file("proc/7/maps", MAPS);
	scratch_file("proc/self/mountinfo", V2);
	scratch_file("sys/fs/cgroup/pod/memory.max", "1000\n");
	found = find("/elsewhere/7.0.whyoom");
	assert_non_null(found);
	assert_string_equal(found, scratch("sys/fs/cgroup/pod"));
	free(found);
	/* The same pid, but another process. */
	assert_null(find("/elsewhere/7.1.whyoom"));
	assert_null(find("0.whyoom"));
	assert_null(target_cgroup(scratch(""), 8, "7.0.whyoom"));
	assert_null(target_cgroup(scratch(""), UINT32_MAX, "7.0.whyoom"));
	(void)state;
}

static void version_1_has_no_early_signs(void **state)
{
	scratch_file("proc/7/cgroup", "4:memory:/pod\n0::/\n");
	scratch_file("proc/7/maps", MAPS);
	scratch_file("proc/self/mountinfo", V1);
	scratch_file("sys/fs/cgroup/memory/pod/memory.limit_in_bytes", "1000\n");
	assert_null(find("7.0.whyoom"));
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    scratch_test(the_process_that_writes_it), scratch_test(version_1_has_no_early_signs)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
