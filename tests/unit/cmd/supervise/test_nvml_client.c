#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../util/unit.h"
#include "../scratch.h"
#include "cmd/supervise/nvml.h"
#include "cmd/supervise/nvml_client.h"
#include "trace/trace.h"

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* This program again, as a helper; the library's name chooses its behaviour. */
static int answer(const char *what)
{
	static struct nvml_answer a;
	struct timespec ts = {.tv_nsec = 20000000};
	char byte;

	for (int n = 0; recv(STDIN_FILENO, &byte, 1, 0) == 1; n++) {
		if (strcmp(what, "hangs") == 0) {
			signal(SIGTERM, SIG_IGN);
			for (;;)
				pause();
		}
		if (strcmp(what, "dies") == 0)
			return 3;
		if (strcmp(what, "babbles") == 0) {
			if (send(STDIN_FILENO, "babble", 6, 0) < 0)
				return 1;
			continue;
		}
		memset(&a, 0, sizeof(a));
		a.asked_ns = now();
		a.cost_ns = strcmp(what, "is dear") ? 0 : 3600000000000u; /* an hour */
		a.count = 1;
		snprintf(a.devices[0].uuid, sizeof(a.devices[0].uuid), "GPU-1");
		a.devices[0].total = 1000;
		a.devices[0].free = n < 3 ? 600 : 700;
		a.devices[0].process_count = n < 3 ? 3 : 1;
		a.devices[0].processes[0] = (struct nvml_process){100, 11, 0};
		a.devices[0].processes[1] = (struct nvml_process){200, 12, 0};
		a.devices[0].processes[2] = (struct nvml_process){50, 11, 0}; /* in two ways */
		nanosleep(&ts, NULL);
		if (send(STDIN_FILENO, &a,
			offsetof(struct nvml_answer, devices) + sizeof(*a.devices), 0) < 0)
			return 1;
	}
	return 0;
}

static struct run_budget budget;

static struct run_trace *fresh(const char *name, int *dir)
{
	struct run_trace *t;
	struct err err;

	mkdir(scratch(name), 0700);
	*dir = open(scratch(name), O_RDONLY | O_DIRECTORY);
	run_budget_init(&budget, false, now(), 0);
	assert_int_equal(run_trace_new(*dir, &t, &err), 0);
	return t;
}

/* A sample every 10 ms; none may wait for the helper. */
static void looks(struct run_nvml *n, struct run_trace *t, int times)
{
	const struct timespec ts = {.tv_nsec = 10000000};

	for (int i = 0; i < times; i++) {
		uint64_t start = now();

		run_nvml_tick(n, t, &budget, start);
		assert_true(now() - start < 5000000000u);
		nanosleep(&ts, NULL);
	}
}

static void wait_for(struct trace *t, uint32_t pid, uint32_t key, uint64_t value)
{
	struct event e;
	struct err err;

	while (trace_next(t, &e, &err) == 1)
		if (e.kind == EV_LEVEL && e.space == 1 && e.u.child.pid == pid) {
			assert_int_equal(e.levels[0].key, key);
			assert_int_equal(e.levels[0].value, value);
			/* The time that the answer took is its age. */
			assert_int_equal(e.levels[e.level_count - 1].key, TRACE_LEVEL_AGE_NS);
			assert_in_range(e.levels[e.level_count - 1].value, 15000000, 10000000000u);
			return;
		}
	fail_msg("no level of process %u", pid);
}

static void changes_are_recorded(void **state)
{
	struct run_nvml *n;
	struct run_trace *t;
	struct trace_set set;
	struct err err;
	struct event e;
	int dir, levels = 0;

	t = fresh("nvml", &dir);
	n = run_nvml_start("/proc/self/exe", "answers");
	assert_non_null(n);
	assert_true(run_nvml_pid(n) > 0);
	looks(n, t, 60);
	run_nvml_stop(n);
	run_trace_close(t, 0);
	assert_int_equal(trace_set_open(scratch("nvml"), &set, &err), 0);
	assert_string_equal(trace_space(set.supervisor, 1), "gpu:0");
	assert_string_equal(trace_info(set.supervisor, "gpu.0.uuid"), "GPU-1");
	wait_for(set.supervisor, 11, TRACE_LEVEL_DEV_USED, 150);
	wait_for(set.supervisor, 12, TRACE_LEVEL_DEV_USED, 200);
	wait_for(set.supervisor, 0, TRACE_LEVEL_DEV_FREE, 600);
	wait_for(set.supervisor, 12, TRACE_LEVEL_DEV_USED, 0); /* ended */
	wait_for(set.supervisor, 11, TRACE_LEVEL_DEV_USED, 100);
	wait_for(set.supervisor, 0, TRACE_LEVEL_DEV_FREE, 700);
	trace_rewind(set.supervisor);
	while (trace_next(set.supervisor, &e, &err) == 1)
		levels += e.kind == EV_LEVEL;
	assert_int_equal(levels, 6); /* each change once */
	trace_set_close(&set);
	close(dir);
}

/* The helper's CPU time is charged: it is not asked again before that is paid for. */
static void cost_is_charged(void **state)
{
	struct run_nvml *n;
	struct run_trace *t;
	struct trace_set set;
	struct err err;
	struct event e;
	int dir, levels = 0;

	t = fresh("dear", &dir);
	n = run_nvml_start("/proc/self/exe", "is dear");
	assert_non_null(n);
	looks(n, t, 60);
	run_nvml_stop(n);
	run_trace_close(t, 0);
	assert_false(run_budget_affords(&budget, RUN_BUDGET_DEVICES, 1));
	assert_true(run_budget_affords(&budget, RUN_BUDGET_LOOKS, 1));
	assert_int_equal(trace_set_open(scratch("dear"), &set, &err), 0);
	while (trace_next(set.supervisor, &e, &err) == 1)
		levels += e.kind == EV_LEVEL;
	assert_int_equal(levels, 3); /* the first answer; from the third on it differs */
	trace_set_close(&set);
	close(dir);
}

/* No process waits long, whatever the helper does. */
static void bad_helpers(void **state)
{
	static const char *const kinds[] = {"hangs", "dies", "babbles"};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct run_nvml *n;
		struct run_trace *t;
		uint64_t start;
		pid_t pid;
		int dir;

		t = fresh(kinds[i], &dir);
		n = run_nvml_start("/proc/self/exe", kinds[i]);
		assert_non_null(n);
		pid = run_nvml_pid(n);
		looks(n, t, 20);
		start = now();
		run_nvml_stop(n);
		assert_true(now() - start < 5000000000u);
		/* Its end is hidden for a moment only. */
		waitpid(pid, NULL, 0);
		assert_int_equal(kill(pid, 0), -1);
		run_trace_close(t, 0);
		close(dir);
	}
}

static void no_helper(void **state)
{
	struct run_nvml *n;
	struct run_trace *t;
	int dir;

	t = fresh("none", &dir);
	n = run_nvml_start("/no/such/helper", "x");
	looks(n, t, 5);
	run_nvml_stop(n);
	/* Another caller waited for it. */
	n = run_nvml_start("/no/such/helper", "x");
	assert_int_equal(waitpid(run_nvml_pid(n), NULL, 0), run_nvml_pid(n));
	run_nvml_gone(n);
	assert_int_equal(run_nvml_pid(n), 0);
	looks(n, t, 2);
	run_nvml_stop(n);
	run_nvml_tick(NULL, t, &budget, now());
	run_nvml_stop(NULL);
	assert_int_equal(run_nvml_pid(NULL), 0);
	run_trace_close(t, 0);
	close(dir);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    scratch_test(changes_are_recorded),
	    scratch_test(cost_is_charged),
	    scratch_test(bad_helpers),
	    scratch_test(no_helper),
	};

	if (argc == 2)
		return answer(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
