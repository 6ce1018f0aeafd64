#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../util/unit.h"
#include "../scratch.h"
#include "cmd/supervise/supervisor_trace.h"
#include "trace/trace.h"

static int fresh(const char *name)
{
	mkdir(scratch(name), 0700);
	return open(scratch(name), O_RDONLY | O_DIRECTORY);
}

/* The analyzer's own reader must get back what was written. */
static void round_trip(void **state)
{
	const struct event_level levels[] = {{1, 4096}, {5, UINT64_MAX}, {49, 0}};
	char *const argv[] = {"python", "", "a b", NULL};
	struct trace_set set;
	struct run_trace *t;
	struct event e;
	struct err err;
	size_t seen = 0;
	int dir = fresh("round");

	assert_int_equal(run_trace_new(dir, &t, &err), 0);
	run_trace_info(t, "key", "value");
	run_trace_info_list(t, "cmdline", argv);
	for (int i = 0; i < 6000; i++) /* several chunks */
		run_trace_levels(t, 0, i % 2 ? 4711 : 0, levels, 3);
	run_trace_child_end(t, 4711, CLD_KILLED, SIGKILL, true);
	run_trace_child_end(t, 4712, CLD_EXITED, 3, false);
	run_trace_child_end(t, 4713, CLD_DUMPED, SIGABRT, false);
	assert_int_equal(run_trace_trouble(t), 0);
	run_trace_close(t, 137);
	close(dir);

	assert_int_equal(trace_set_open(scratch("round"), &set, &err), 0);
	assert_non_null(set.supervisor);
	assert_string_equal(trace_info(set.supervisor, "key"), "value");
	assert_string_equal(trace_facts(set.supervisor)->argv[1], "");
	assert_string_equal(trace_facts(set.supervisor)->argv[2], "a b");
	assert_null(trace_facts(set.supervisor)->argv[3]);
	while (trace_next(set.supervisor, &e, &err) > 0) {
		if (e.kind == EV_LEVEL) {
			assert_int_equal(e.u.child.pid, seen % 2 ? 4711 : 0);
			assert_int_equal(e.level_count, 3);
			for (uint32_t i = 0; i < 3; i++) {
				assert_int_equal(e.levels[i].key, levels[i].key);
				assert_int_equal(e.levels[i].value, levels[i].value);
			}
		} else {
			assert_int_equal(e.kind, EV_CHILD_END);
			assert_int_equal(e.u.child.pid, 4711 + seen - 6000);
			assert_int_equal(
			    e.u.child.how, seen == 6001 ? TRACE_END_EXIT : TRACE_END_SIGNAL);
			assert_int_equal(e.u.child.code, seen == 6000 ? 9 : seen == 6001 ? 3 : 6);
			assert_int_equal(e.u.child.flags, seen == 6000 ? 1 : seen == 6001 ? 0 : 2);
		}
		seen++;
	}
	assert_int_equal(seen, 6003);
	assert_int_equal(trace_facts(set.supervisor)->torn_chunks, 0);
	assert_int_equal(trace_facts(set.supervisor)->bad_checksums, 0);
	assert_int_equal(trace_facts(set.supervisor)->end_how, TRACE_END_EXIT);
	assert_int_equal(trace_facts(set.supervisor)->end_code, 137);
	trace_set_close(&set);
}

static void private_and_exclusive(void **state)
{
	struct run_trace *t, *other;
	struct stat st;
	struct err err;
	int dir = fresh("exclusive"), fd;

	assert_int_equal(run_trace_new(dir, &t, &err), 0);
	assert_int_equal(run_trace_new(dir, &other, &err), -EEXIST);
	assert_int_equal(fstat(run_trace_fd(t), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_true(fcntl(run_trace_fd(t), F_GETFD) & FD_CLOEXEC);
	fd = openat(dir, RUN_TRACE_NAME, O_RDONLY);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1); /* this shows that it is in use */
	run_trace_close(t, 0);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	close(fd);
	unlinkat(dir, RUN_TRACE_NAME, 0);
	assert_int_equal(symlinkat("elsewhere", dir, RUN_TRACE_NAME), 0);
	assert_int_equal(run_trace_new(dir, &t, &err), -EEXIST);
	close(dir);
	run_trace_close(NULL, 0);
}

/* Killed between any two calls, all earlier writes are there. */
static void survives_sigkill(void **state)
{
	const struct event_level level = {1, 2};
	struct trace_set set;
	struct event e;
	struct err err;
	int dir = fresh("killed"), status, seen = 0;
	pid_t pid = fork();

	if (pid == 0) {
		struct run_trace *t;

		run_trace_new(dir, &t, &err);
		for (int i = 0; i < 100; i++)
			run_trace_levels(t, 0, 5, &level, 1);
		raise(SIGKILL);
	}
	waitpid(pid, &status, 0);
	close(dir);
	assert_int_equal(trace_set_open(scratch("killed"), &set, &err), 0);
	while (trace_next(set.supervisor, &e, &err) > 0)
		seen++;
	assert_int_equal(seen, 100);
	assert_int_equal(trace_facts(set.supervisor)->end_how, TRACE_END_NONE);
	trace_set_close(&set);
}

/* No room: no failure, but a count and an errno. */
static void no_room(void **state)
{
	int dir = fresh("full"), status;
	pid_t pid = fork();

	if (pid == 0) {
		const struct rlimit limit = {200000, 200000};
		const struct event_level level = {1, 2};
		struct run_trace *t;
		struct err err;

		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
		if (run_trace_new(dir, &t, &err))
			_exit(1);
		for (int i = 0; i < 20000; i++)
			run_trace_levels(t, 0, 5, &level, 1);
		if (run_trace_trouble(t) != EFBIG)
			_exit(2);
		run_trace_close(t, 0);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	{
		struct trace_set set;
		struct err err;

		assert_int_equal(trace_set_open(scratch("full"), &set, &err), 0);
		assert_true(trace_facts(set.supervisor)->dropped[TRACE_DROP_NO_SPACE] > 1000);
		trace_set_close(&set);
	}
	close(dir);
}

/* Devices, and a process's use of one. */
static void devices(void **state)
{
	const struct event_level used = {TRACE_LEVEL_DEV_USED, 300};
	struct run_trace *t;
	struct trace_set set;
	struct event e;
	struct err err;
	int dir = fresh("devices");

	assert_int_equal(run_trace_new(dir, &t, &err), 0);
	run_trace_space(t, 3, "gpu:2");
	run_trace_levels_of(t, 4711, 3, &used, 1);
	run_trace_levels_of(t, 0, 3, &used, 1);
	run_trace_levels(t, 0, 4711, &used, 1);
	run_trace_close(t, 0);
	assert_int_equal(trace_set_open(scratch("devices"), &set, &err), 0);
	assert_string_equal(trace_space(set.supervisor, 3), "gpu:2");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(trace_next(set.supervisor, &e, &err), 1);
		assert_int_equal(e.kind, EV_LEVEL);
		assert_int_equal(e.space, i < 2 ? 3 : 0);
		assert_int_equal(e.u.child.pid, i == 1 ? 0 : 4711);
		assert_int_equal(e.levels[0].key, TRACE_LEVEL_DEV_USED);
		assert_int_equal(e.levels[0].value, 300);
	}
	trace_set_close(&set);
	close(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    scratch_test(round_trip),
	    scratch_test(private_and_exclusive),
	    scratch_test(survives_sigkill),
	    scratch_test(no_room),
	    scratch_test(devices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
