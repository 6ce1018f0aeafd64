#include <string.h>

#include "cmd/run_cgroup.h"
#include "place.h"
#include "unit.h"

static struct event_level levels[32];
static size_t count;

static uint64_t level(uint32_t key)
{
	for (size_t i = 0; i < count; i++)
		if (levels[i].key == key)
			return levels[i].value;
	return UINT64_MAX;
}

static void read_group(const char *root, struct run_cgroup *group)
{
	run_cgroup_find(place_path(root), 7, group);
	count = run_cgroup_levels(group, levels, 32);
}

static void version_2(void **state)
{
	struct run_cgroup group;

	place_text("v2/proc/7/cgroup", "0::/pod/main\n");
	place_text("v2/proc/self/mountinfo",
	    "22 1 0:21 / /proc rw - proc proc rw\n"
	    "30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
	place_text("v2/sys/fs/cgroup/cgroup.controllers", "memory\n");
	place_text("v2/sys/fs/cgroup/pod/memory.max", "1048576000\n");
	place_text("v2/sys/fs/cgroup/pod/memory.current", "900000000\n");
	place_text(
	    "v2/sys/fs/cgroup/pod/memory.events", "low 0\nhigh 3\nmax 9\noom 2\noom_kill 1\n");
	place_text("v2/sys/fs/cgroup/pod/memory.stat",
	    "anon 700\nfile 80\nkernel 9\nshmem 5\ninactive_file 60\nanon_thp 1\n");
	place_text("v2/sys/fs/cgroup/pod/main/memory.max", "max\n");
	place_text("v2/sys/fs/cgroup/pod/main/memory.current", "5\n");
	read_group("v2", &group);
	assert_int_equal(group.version, 2);
	assert_string_equal(group.path, "/pod/main");
	assert_string_equal(
	    group.dir, place_path("v2/sys/fs/cgroup/pod")); /* whose limit strikes */
	assert_int_equal(level(TRACE_LEVEL_CG_CURRENT), 900000000);
	assert_int_equal(level(TRACE_LEVEL_CG_MAX), 1048576000);
	assert_int_equal(level(TRACE_LEVEL_CG_ANON), 700);
	assert_int_equal(level(TRACE_LEVEL_CG_FILE), 80);
	assert_int_equal(level(TRACE_LEVEL_CG_KERNEL), 9);
	assert_int_equal(level(TRACE_LEVEL_CG_SHMEM), 5);
	assert_int_equal(level(TRACE_LEVEL_CG_INACTIVE_FILE), 60);
	assert_int_equal(level(TRACE_LEVEL_CG_OOM), 2);
	assert_int_equal(level(TRACE_LEVEL_CG_OOM_KILL), 1);
	assert_int_equal(level(TRACE_LEVEL_CG_HIGH), UINT64_MAX); /* absent */

	/* the smaller of two */
	place_text("v2/sys/fs/cgroup/pod/main/memory.max", "1000000\n");
	read_group("v2", &group);
	assert_string_equal(group.dir, place_path("v2/sys/fs/cgroup/pod/main"));
	assert_int_equal(level(TRACE_LEVEL_CG_CURRENT), 5);
}

static void no_limit_anywhere(void **state)
{
	struct run_cgroup group;

	place_text("free/proc/7/cgroup", "0::/user.slice\n");
	place_text("free/proc/self/mountinfo", "30 22 0:26 / /cg rw - cgroup2 none rw\n");
	place_text("free/cg/user.slice/memory.max", "max\n");
	place_text("free/cg/user.slice/memory.current", "12\n");
	read_group("free", &group);
	assert_string_equal(group.dir, place_path("free/cg/user.slice"));
	assert_int_equal(level(TRACE_LEVEL_CG_CURRENT), 12);
	assert_int_equal(level(TRACE_LEVEL_CG_MAX), UINT64_MAX);
}

static void version_1_in_a_container(void **state)
{
	struct run_cgroup group;

	/* the host's path, while only our own group is mounted; both hierarchies at once */
	place_text(
	    "v1/proc/7/cgroup", "9:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n0::/init\n");
	place_text("v1/proc/self/mountinfo",
	    "31 30 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	    "32 30 0:28 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu,cpuacct\n"
	    "33 30 0:29 /docker/abc /sys/fs/a\\040b/memory ro - cgroup cgroup rw,memory\n");
	place_text("v1/sys/fs/a b/memory/memory.limit_in_bytes", "536870912\n");
	place_text("v1/sys/fs/a b/memory/memory.usage_in_bytes", "500000000\n");
	place_text("v1/sys/fs/a b/memory/memory.max_usage_in_bytes", "536870912\n");
	place_text("v1/sys/fs/a b/memory/memory.stat",
	    "cache 1\nrss 2\ntotal_cache 30\ntotal_rss 40\ntotal_inactive_file 7\n");
	place_text("v1/sys/fs/a b/memory/memory.oom_control",
	    "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
	read_group("v1", &group);
	assert_int_equal(group.version, 1);
	assert_string_equal(group.dir, place_path("v1/sys/fs/a b/memory"));
	assert_int_equal(level(TRACE_LEVEL_CG_MAX), 536870912);
	assert_int_equal(level(TRACE_LEVEL_CG_ANON), 40);
	assert_int_equal(level(TRACE_LEVEL_CG_FILE), 30);
	assert_int_equal(level(TRACE_LEVEL_CG_INACTIVE_FILE), 7);
	assert_int_equal(level(TRACE_LEVEL_CG_OOM_KILL), 4);
	assert_int_equal(level(TRACE_LEVEL_CG_PEAK), 536870912);

	place_text("v1/sys/fs/a b/memory/memory.limit_in_bytes", "9223372036854771712\n");
	read_group("v1", &group);
	assert_int_equal(level(TRACE_LEVEL_CG_MAX), UINT64_MAX);
}

static void nothing_there(void **state)
{
	struct run_cgroup group;

	read_group("no-such-root", &group);
	assert_int_equal(group.version, 0);
	assert_int_equal(count, 0);
	place_text("odd/proc/7/cgroup", "rubbish\n\n::::\n5:memory\n");
	read_group("odd", &group);
	assert_int_equal(count, 0);
}

static void machine(void **state)
{
	place_text(
	    "m/proc/meminfo", "MemTotal:       16 kB\nMemFree: 1 kB\nMemAvailable:   8 kB\n");
	count = run_system_levels(place_path("m"), levels, 32);
	assert_int_equal(level(TRACE_LEVEL_SYS_TOTAL), 16384);
	assert_int_equal(level(TRACE_LEVEL_SYS_AVAILABLE), 8192);
	assert_int_equal(run_system_levels(place_path("m"), levels, 1), 1); /* no more than fits */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(version_2),
	    cmocka_unit_test(no_limit_anywhere),
	    cmocka_unit_test(version_1_in_a_container),
	    cmocka_unit_test(nothing_there),
	    cmocka_unit_test(machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
