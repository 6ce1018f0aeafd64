/* The sign that a cgroup is out of memory. Version 2 has an ordinary file of counters; version 1
 * needs the kernel. */
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../util/unit.h"
#include "../scratch.h"
#include "cmd/supervise/oom_watch.h"

static bool is_ready(const struct run_watch *w, int ms)
{
	struct pollfd fd = {.fd = w->fd, .events = POLLIN};

	return poll(&fd, 1, ms) == 1;
}

static void version_2(void **state)
{
	struct run_cgroup group = {.version = 2};
	struct run_watch w;
	int fd;

	run_watch_init(&w);
	assert_int_equal(w.fd, -1);
	assert_int_equal(run_watch_take(&w), RUN_WATCH_NOTHING);
	scratch_file("g/memory.events", "low 0\nhigh 0\nmax 3\noom 2\noom_kill 2\n");
	snprintf(group.dir, sizeof(group.dir), "%s", scratch("g"));
	run_watch_on(&w, &group);
	assert_true(w.fd >= 0);
	assert_false(is_ready(&w, 0));
	assert_int_equal(run_watch_take(&w), RUN_WATCH_NOTHING);
	/* The same again: no notice is lost. */
	scratch_file("g/memory.events", "low 0\nhigh 0\nmax 9\noom 2\noom_kill 2\n");
	fd = w.fd;
	run_watch_on(&w, &group);
	assert_int_equal(w.fd, fd);
	assert_true(is_ready(&w, 1000));
	assert_int_equal(run_watch_take(&w), RUN_WATCH_FULL);
	assert_int_equal(run_watch_take(&w), RUN_WATCH_NOTHING);
	scratch_file("g/memory.events", "low 0\nhigh 0\nmax 9\noom 3\noom_kill 2\n");
	assert_true(is_ready(&w, 1000));
	assert_int_equal(run_watch_take(&w), RUN_WATCH_OOM);
	assert_false(is_ready(&w, 0));
	/* Another group, which has none of its files. */
	snprintf(group.dir, sizeof(group.dir), "%s", scratch("gone"));
	run_watch_on(&w, &group);
	assert_int_equal(w.fd, -1);
	group = (struct run_cgroup){.version = 0};
	run_watch_on(&w, &group);
	assert_int_equal(w.fd, -1);
	run_watch_off(&w);
}

static bool put(const char *dir, const char *name, const char *text)
{
	char path[PATH_MAX + 64];
	int fd;
	bool ok;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY);
	ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (fd >= 0)
		close(fd);
	return ok;
}

/* A group of our own with 16 MiB, below the one that we are in. */
static bool make_group(struct run_cgroup *group)
{
	char pid[32];

	run_cgroup_find("", getpid(), group);
	if (group->version != 1)
		return false;
	snprintf(pid, sizeof(pid), "/whyoom-test.%d", (int)getpid());
	strncat(group->dir, pid, sizeof(group->dir) - strlen(group->dir) - 1);
	return !mkdir(group->dir, 0755) && put(group->dir, "memory.limit_in_bytes", "16777216");
}

static void version_1(void **state)
{
	struct run_cgroup group;
	struct run_watch w;
	int status;
	pid_t pid;

	if (!make_group(&group)) {
		rmdir(group.dir);
		skip();
	}
	run_watch_init(&w);
	run_watch_on(&w, &group);
	assert_true(w.fd >= 0);
	assert_int_equal(run_watch_take(&w), RUN_WATCH_NOTHING);
	pid = fork();
	if (pid == 0) {
		char *p = mmap(
		    NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (!put(group.dir, "cgroup.procs", "0"))
			_exit(1);
		memset(p, 1, 64 << 20);
		_exit(0);
	}
	assert_true(is_ready(&w, 20000));
	assert_int_equal(run_watch_take(&w), RUN_WATCH_OOM);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	run_watch_off(&w);
	rmdir(group.dir);
}

/* A file that only looks so: the kernel does not know it. */
static void version_1_of_nobody(void **state)
{
	struct run_cgroup group = {.version = 1};
	struct run_watch w;

	scratch_file("g/memory.oom_control", "oom_kill 0\n");
	snprintf(group.dir, sizeof(group.dir), "%s", scratch("g"));
	run_watch_init(&w);
	run_watch_on(&w, &group); /* no cgroup.event_control, as without write permission */
	assert_int_equal(w.fd, -1);
	assert_int_equal(run_watch_take(&w), RUN_WATCH_NOTHING);
	run_watch_off(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    scratch_test(version_2), scratch_test(version_1), scratch_test(version_1_of_nobody)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
