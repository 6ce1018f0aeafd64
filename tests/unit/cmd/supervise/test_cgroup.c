/* Memory cgroups of both versions, as kernels and container engines show them. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../util/unit.h"
#include "../scratch.h"
#include "cmd/supervise/cgroup.h"

#define V2 "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1                                                                                         \
	"24 20 0:22 / /sys rw - sysfs sysfs rw\n"                                                  \
	"31 24 0:27 / /sys/fs/cgroup/systemd rw shared:5 - cgroup cgroup rw,xattr,name=systemd\n"  \
	"32 24 0:28 / /sys/fs/cgroup/memory rw shared:6 master:7 - cgroup cgroup rw,memory\n"

static struct run_cgroup found;

static void find(const char *cgroup, const char *mountinfo)
{
	scratch_file("proc/7/cgroup", cgroup);
	scratch_file("proc/self/mountinfo", mountinfo);
	run_cgroup_find(scratch(""), 7, &found);
}

static void at(const char *dir)
{
	assert_string_equal(found.dir, scratch(dir));
}

static uint64_t level(const struct event_level *levels, size_t n, uint32_t key)
{
	unsigned seen = 0;
	uint64_t value = UINT64_MAX;

	for (size_t i = 0; i < n; i++)
		if (levels[i].key == key) {
			value = levels[i].value;
			seen++;
		}
	assert_true(seen <= 1);
	return value;
}
#define NONE UINT64_MAX

static void the_smallest_limit_of_all_parents(void **state)
{
	scratch_file("sys/fs/cgroup/a/b/c/memory.max", "max\n");
	scratch_file("sys/fs/cgroup/a/b/memory.max", "1000000\n");
	scratch_file("sys/fs/cgroup/a/memory.max", "2000000\n");
	find("0::/a/b/c\n", V2);
	assert_int_equal(found.version, 2);
	assert_string_equal(found.path, "/a/b/c");
	at("sys/fs/cgroup/a/b");
	scratch_file("sys/fs/cgroup/a/memory.max", "999999\n");
	find("0::/a/b/c\n", V2);
	at("sys/fs/cgroup/a");
	/* Equal limits: the innermost, whose usage is the process's. */
	scratch_file("sys/fs/cgroup/a/memory.max", "1000000\n");
	find("0::/a/b/c\n", V2);
	at("sys/fs/cgroup/a/b");
	/* None anywhere: its own. */
	scratch_file("sys/fs/cgroup/a/memory.max", "max\n");
	scratch_file("sys/fs/cgroup/a/b/memory.max", "max\n");
	find("0::/a/b/c\n", V2);
	at("sys/fs/cgroup/a/b/c");
	/* The root, as in a container with a namespace of its own. */
	scratch_file("sys/fs/cgroup/memory.max", "5\n");
	find("0::/\n", V2);
	at("sys/fs/cgroup");
	assert_string_equal(found.path, "/");
}

static void version_1(void **state)
{
	scratch_file("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
	scratch_file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	find("12:pids:/p\n5:cpu,memory,io:/a\n1:name=systemd:/user\n", V1);
	assert_int_equal(found.version, 1);
	assert_string_equal(found.path, "/a");
	at("sys/fs/cgroup/memory/a");
	scratch_file("sys/fs/cgroup/memory/memory.limit_in_bytes", "4096\n");
	find("5:memory:/a\n", V1);
	at("sys/fs/cgroup/memory");
	/* Both are mounted, and version 1 has the controller, in either order. */
	find("5:memory:/a\n0::/other\n", V1 V2);
	assert_int_equal(found.version, 1);
	find("0::/other\n5:memory:/a\n", V2 V1);
	assert_int_equal(found.version, 1);
	assert_string_equal(found.path, "/a");
	/* A controller whose name only begins so. */
	find("5:memoryish:/a\n", V1);
	assert_int_equal(found.version, 0);
}

static void what_a_container_sees(void **state)
{
	/* The host's path, and the mount shows the group itself. */
	scratch_file("sys/fs/cgroup/memory.max", "100\n");
	scratch_file("sys/fs/cgroup/child/memory.max", "50\n");
	find("0::/docker/abc/child\n",
	    "30 24 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n");
	at("sys/fs/cgroup/child");
	find("0::/docker/abc\n", "30 24 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n");
	at("sys/fs/cgroup");
	/* Another group with the same beginning is not below it. */
	scratch_file("sys/fs/cgroupd/memory.max", "1\n");
	find("0::/docker/abcd\n", "30 24 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n");
	at("sys/fs/cgroup");
	/* Outside of the namespace: nothing above the mount is read. */
	scratch_file("sys/fs/memory.max", "1\n");
	find("0::/../../other\n", V2);
	at("sys/fs/cgroup");
	/* Blanks are written as octal. */
	scratch_file("my cgroup/x/memory.max", "7\n");
	find("0::/x\n", "30 24 0:26 / /my\\040cgroup rw - cgroup2 cgroup rw\n");
	at("my cgroup/x");
}

static void hostile_files(void **state)
{
	static char path[20000], text[20100];

	find("", V2);
	assert_int_equal(found.version, 0);
	find("0::/a\n", "");
	assert_int_equal(found.version, 0);
	find("0::/a\n", "nonsense\n - \n - cgroup2\n1 2 3 - cgroup2 x rw\n");
	assert_int_equal(found.version, 0);
	find("nonsense\n:\n::\n0:\n", V2);
	assert_int_equal(found.version, 2); /* "::" has an empty list and an empty path */
	at("sys/fs/cgroup");
	find("rubbish\n\n5:memory\n", V2);
	assert_int_equal(found.version, 0);
	find("5:memory:/a\n", V2); /* the controller is of version 1, no such mount */
	assert_int_equal(found.version, 0);
	memset(path, 'x', sizeof(path) - 1);
	for (size_t i = 0; i < sizeof(path) - 1; i += 100)
		path[i] = '/';
	snprintf(text, sizeof(text), "0::%s\n", path);
	find(text, V2);
	assert_true(strlen(found.dir) < PATH_MAX);
	run_cgroup_find(scratch(""), 8, &found); /* the group is removed */
	assert_int_equal(found.version, 0);
	assert_int_equal(run_cgroup_levels(&found, NULL, 0), 0);
}

static void levels_of_version_2(void **state)
{
	struct event_level out[32];
	size_t n;

	find("0::/g\n", V2);
	assert_int_equal(run_cgroup_levels(&found, out, 32), 0); /* no files: no levels */
	scratch_file("sys/fs/cgroup/g/memory.current", "18446744073709551615\n");
	scratch_file("sys/fs/cgroup/g/memory.max", "1000\n");
	scratch_file("sys/fs/cgroup/g/memory.high", "max\n");
	scratch_file("sys/fs/cgroup/g/memory.peak", "77\n");
	scratch_file("sys/fs/cgroup/g/memory.stat",
	    "anon 11\nfile 22\nkernel 33\nkernel_stack 34\nsock 3\nshmem 44\nfile_mapped 23\n"
	    "inactive_anon 1\ninactive_file 55\nanon_thp 12\nbroken\nworse x\n");
	scratch_file("sys/fs/cgroup/g/memory.events",
	    "low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 6\n");
	find("0::/g\n", V2);
	n = run_cgroup_levels(&found, out, 32);
	assert_int_equal(n, 11);
	assert_true(level(out, n, TRACE_LEVEL_CG_CURRENT) == UINT64_MAX);
	assert_int_equal(level(out, n, TRACE_LEVEL_CG_MAX), 1000);
	assert_true(level(out, n, TRACE_LEVEL_CG_HIGH) == NONE);
	assert_int_equal(level(out, n, TRACE_LEVEL_CG_PEAK), 77);
	/* with all that memory.stat does not have yet */
	assert_true(level(out, n, TRACE_LEVEL_CG_ANON) == UINT64_MAX - 22 - 36);
	assert_int_equal(level(out, n, TRACE_LEVEL_CG_FILE), 22);
	assert_int_equal(level(out, n, TRACE_LEVEL_CG_KERNEL), 36); /* with the sockets */
	assert_int_equal(level(out, n, TRACE_LEVEL_CG_SHMEM), 44);
	assert_int_equal(level(out, n, TRACE_LEVEL_CG_INACTIVE_FILE), 55);
	assert_int_equal(level(out, n, TRACE_LEVEL_CG_HIGH_COUNT), 2);
	assert_true(level(out, n, TRACE_LEVEL_CG_SWAP_MAX) == NONE);
	assert_int_equal(level(out, n, TRACE_LEVEL_CG_OOM), 4);
	assert_int_equal(level(out, n, TRACE_LEVEL_CG_OOM_KILL), 5);
	/* Linux has the sum since 5.18 and the peak since 5.19. */
	scratch_file("sys/fs/cgroup/g/memory.stat",
	    "anon 11\nfile 22\nkernel_stack 34\npagetables 5\npercpu 6\nsock 3\nshmem 44\n"
	    "inactive_file 55\nslab_reclaimable 70\nslab_unreclaimable 8\nslab 78\n");
	n = run_cgroup_levels(&found, out, 32);
	assert_int_equal(level(out, n, TRACE_LEVEL_CG_KERNEL), 34 + 5 + 6 + 78 + 3);
	/* Never more than there is room for. */
	for (size_t max = 0; max < 12; max++) {
		memset(out, 0xee, sizeof(out));
		assert_int_equal(run_cgroup_levels(&found, out, max), max < 11 ? max : 11);
		assert_int_equal(out[max].key, max < 11 ? 0xeeeeeeee : out[max].key);
	}
	/* What a group below took is not in memory.stat yet. */
	scratch_file("sys/fs/cgroup/g/memory.current", "1000\n");
	n = run_cgroup_levels(&found, out, 32);
	assert_int_equal(
	    level(out, n, TRACE_LEVEL_CG_ANON), 1000 - 22 - level(out, n, TRACE_LEVEL_CG_KERNEL));
	/* What a killed process held is still in memory.stat, and no longer in the usage. */
	scratch_file("sys/fs/cgroup/g/memory.current", "30\n");
	scratch_file("sys/fs/cgroup/g/memory.swap.max", "70\n");
	n = run_cgroup_levels(&found, out, 32);
	assert_int_equal(level(out, n, TRACE_LEVEL_CG_ANON), 11);
	assert_int_equal(level(out, n, TRACE_LEVEL_CG_SHMEM), 30);
	assert_int_equal(level(out, n, TRACE_LEVEL_CG_INACTIVE_FILE), 30);
	assert_int_equal(level(out, n, TRACE_LEVEL_CG_SWAP_MAX), 70);
}

static void levels_of_version_1(void **state)
{
	struct event_level out[32];
	size_t n;

	scratch_file("sys/fs/cgroup/memory/g/memory.usage_in_bytes", "900\n");
	scratch_file("sys/fs/cgroup/memory/g/memory.limit_in_bytes", "1000\n");
	scratch_file("sys/fs/cgroup/memory/g/memory.max_usage_in_bytes", "950\n");
	scratch_file("sys/fs/cgroup/memory/g/memory.kmem.usage_in_bytes", "20\n");
	scratch_file("sys/fs/cgroup/memory/g/memory.stat",
	    "cache 1\nrss 2\nshmem 3\ninactive_file 4\nswap 5\ntotal_cache 10\ntotal_rss 20\n"
	    "total_rss_huge 21\ntotal_shmem 30\ntotal_inactive_file 40\ntotal_swap 50\n");
	scratch_file("sys/fs/cgroup/memory/g/memory.oom_control",
	    "oom_kill_disable 0\nunder_oom 1\noom_kill 3\n");
	find("5:memory:/g\n", V1);
	n = run_cgroup_levels(&found, out, 32);
	assert_int_equal(n, 10);
	assert_int_equal(level(out, n, TRACE_LEVEL_CG_CURRENT), 900);
	assert_int_equal(level(out, n, TRACE_LEVEL_CG_MAX), 1000);
	assert_int_equal(level(out, n, TRACE_LEVEL_CG_PEAK), 950);
	assert_int_equal(level(out, n, TRACE_LEVEL_CG_KERNEL), 20);
	assert_int_equal(level(out, n, TRACE_LEVEL_CG_ANON), 20); /* with the groups below it */
	assert_int_equal(level(out, n, TRACE_LEVEL_CG_FILE), 10);
	assert_int_equal(level(out, n, TRACE_LEVEL_CG_SHMEM), 30);
	assert_int_equal(level(out, n, TRACE_LEVEL_CG_INACTIVE_FILE), 40);
	assert_int_equal(level(out, n, TRACE_LEVEL_CG_SWAP), 50);
	assert_int_equal(level(out, n, TRACE_LEVEL_CG_OOM_KILL), 3);
	/* No limit is no level. */
	scratch_file("sys/fs/cgroup/memory/g/memory.limit_in_bytes", "9223372036854771712\n");
	n = run_cgroup_levels(&found, out, 32);
	assert_true(level(out, n, TRACE_LEVEL_CG_MAX) == NONE);
}

static void the_machine(void **state)
{
	struct event_level out[4];

	assert_int_equal(run_system_levels(scratch(""), out, 4), 0);
	scratch_file("proc/meminfo",
	    "MemTotal:       16384 kB\nMemFree:          100 kB\nMemAvailable:    8192 kB\n");
	assert_int_equal(run_system_levels(scratch(""), out, 4), 2);
	assert_int_equal(level(out, 2, TRACE_LEVEL_SYS_TOTAL), 16777216);
	assert_int_equal(level(out, 2, TRACE_LEVEL_SYS_AVAILABLE), 8388608);
	assert_int_equal(run_system_levels(scratch(""), out, 1), 1); /* no more than fits */
	assert_int_equal(run_system_levels("", out, 4), 3); /* this one */
	assert_true(out[0].value >= out[1].value && out[1].value > 0);
	/* An old kernel does not count. */
	assert_int_equal(run_system_kills(scratch(""), out, 4), 0);
	scratch_file("proc/vmstat", "nr_free_pages 12\noom_kill 7\npswpin 0\n");
	assert_int_equal(run_system_kills(scratch(""), out, 4), 1);
	assert_int_equal(level(out, 1, TRACE_LEVEL_SYS_OOM_KILL), 7);
}

/* The usage alone, from a file that is kept open. */
static void usage_is_read_again(void **state)
{
	uint64_t usage;
	int fd;

	scratch_file("sys/fs/cgroup/u/memory.max", "1000000\n");
	scratch_file("sys/fs/cgroup/u/memory.current", "500000\n");
	find("0::/u\n", V2);
	fd = run_cgroup_open(&found);
	assert_true(fd >= 0);
	assert_true(run_cgroup_usage(fd, &usage));
	assert_int_equal(usage, 500000);
	scratch_file("sys/fs/cgroup/u/memory.current", "600000\n");
	assert_true(run_cgroup_usage(fd, &usage));
	assert_int_equal(usage, 600000);
	close(fd);
	scratch_file("sys/fs/cgroup/memory/u/memory.usage_in_bytes", "700000\n");
	find("4:memory:/u\n", V1);
	fd = run_cgroup_open(&found);
	assert_true(run_cgroup_usage(fd, &usage));
	assert_int_equal(usage, 700000);
	scratch_file("sys/fs/cgroup/memory/u/memory.usage_in_bytes", "nothing\n");
	assert_false(run_cgroup_usage(fd, &usage));
	close(fd);
	assert_int_equal(run_cgroup_open(&(struct run_cgroup){.version = 0}), -1);
	assert_false(run_cgroup_usage(-1, &usage));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    scratch_test(usage_is_read_again),
	    scratch_test(the_smallest_limit_of_all_parents),
	    scratch_test(version_1),
	    scratch_test(what_a_container_sees),
	    scratch_test(hostile_files),
	    scratch_test(levels_of_version_2),
	    scratch_test(levels_of_version_1),
	    scratch_test(the_machine),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
