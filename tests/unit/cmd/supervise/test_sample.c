#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../util/unit.h"
#include "../scratch.h"
#include "cmd/supervise/sample.h"
#include "trace/trace.h"

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* A child that starts one of its own and then takes 8 MiB at each byte it is sent. */
static pid_t start(int *push, int *done)
{
	int in[2], out[2];
	pid_t pid;

	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(out), 0);
	pid = fork();
	if (pid == 0) {
		pid_t kid = fork();
		char c;

		if (kid == 0) {
			close(in[1]);
			_exit(read(in[0], &c, 0) < 0 || pause());
		}
		close(in[1]);
		if (write(out[1], &kid, sizeof(kid)) < 0)
			_exit(1);
		while (read(in[0], &c, 1) == 1) {
			char *p = mmap(NULL, 8u << 20, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			memset(p, 1, 8u << 20);
			if (write(out[1], "", 1) != 1)
				break;
		}
		kill(kid, SIGKILL);
		_exit(0);
	}
	close(in[0]);
	close(out[1]);
	*push = in[1];
	*done = out[0];
	return pid;
}

static void growth_and_descendants(void **state)
{
	int push, done, dir, found = 0;
	uint64_t first = 0, last = 0, peak = 0, kills = 0, due;
	struct run_sampler *s;
	struct run_trace *t;
	struct trace_set set;
	struct event e;
	struct err err;
	pid_t pid, kid;
	char c;

	mkdir(scratch("samples"), 0700);
	dir = open(scratch("samples"), O_RDONLY | O_DIRECTORY);
	assert_int_equal(run_trace_new(dir, &t, &err), 0);
	pid = start(&push, &done);
	assert_int_equal(read(done, &kid, sizeof(kid)), sizeof(kid));
	s = run_sampler_new(t, pid, dir, false);
	assert_non_null(s);
	for (int i = 0; i < 10; i++) {
		uint64_t at = now() + (uint64_t)i * 1000000000u; /* as if time passed */

		due = run_sampler_tick(s, at);
		assert_true(due > at);
		assert_true(due <= at + 60000000000u);
		assert_int_equal(write(push, "", 1), 1);
		assert_int_equal(read(done, &c, 1), 1);
	}
	close(push);
	waitpid(pid, NULL, 0);
	run_sampler_last(s);
	/* It grew and ended: the kernel neither killed it nor held it back. */
	assert_false(run_sampler_short(s));
	run_sampler_free(s);
	run_sampler_free(NULL);
	run_trace_close(t, 0);
	close(dir);

	assert_int_equal(trace_set_open(scratch("samples"), &set, &err), 0);
	while (trace_next(set.supervisor, &e, &err) > 0) {
		if (e.kind != EV_LEVEL)
			continue;
		found |= e.u.child.pid == (uint32_t)kid;
		for (uint32_t i = 0; i < e.level_count; i++)
			kills += e.levels[i].key == TRACE_LEVEL_SYS_OOM_KILL;
		for (uint32_t i = 0; e.u.child.pid == (uint32_t)pid && i < e.level_count; i++)
			if (e.levels[i].key == TRACE_LEVEL_RSS) {
				first = first ? first : e.levels[i].value;
				last = e.levels[i].value;
			} else if (e.levels[i].key == TRACE_LEVEL_RSS_PEAK) {
				peak = e.levels[i].value;
			}
	}
	assert_true(found);
	assert_true(last >= first + (60u << 20));
	/* The last push came after the last sample: the kernel's count at the end has it. */
	assert_true(peak >= last + (7u << 20));
	/* If the kernel counts: once at the start, once at the end. */
	assert_int_equal(kills, access("/proc/vmstat", R_OK) ? 0 : 2);
	trace_set_close(&set);
}

/* A level that never moves is written once, and again only after a rest. */
static void calm(void **state)
{
	struct run_sampler *s;
	struct run_trace *t;
	struct err err;
	uint64_t bytes, at = now();
	int dir;
	pid_t pid = fork();

	if (pid == 0)
		_exit(pause());
	mkdir(scratch("calm"), 0700);
	dir = open(scratch("calm"), O_RDONLY | O_DIRECTORY);
	assert_int_equal(run_trace_new(dir, &t, &err), 0);
	s = run_sampler_new(t, pid, dir, false);
	for (int i = 0; i < 400; i++)
		at = run_sampler_tick(s, at);
	bytes = run_trace_bytes(t);
	assert_true(at > now() + 100000000000u); /* it has slowed down to a sample a second */
	assert_true(bytes <= 4 * 65536);
	run_sampler_free(s);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	run_trace_close(t, 0);
	close(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    scratch_test(growth_and_descendants),
	    scratch_test(calm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
