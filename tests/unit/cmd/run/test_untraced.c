/* Which processes leave no trace, and how the supervisor's trace says so. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../util/unit.h"
#include "../scratch.h"
#include "cmd/run/untraced.h"
#include "report/unrecorded.h"

static int open_directory(void)
{
	mkdir(scratch("run"), 0700);
	return open(scratch("run"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* A process that waits, and first maps a file if it is given one. */
static pid_t start(const char *maps)
{
	int ready[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		int fd = maps ? open(maps, O_RDONLY) : -1;

		if (maps && mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
			_exit(1);
		_exit(write(ready[1], "", 1) != 1 || pause());
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	return pid;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void who_has_one(void **state)
{
	int dir = open_directory();
	pid_t without = start(NULL), with, before = start(NULL);
	char name[64];

	snprintf(name, sizeof(name), "run/%d.0.whyoom", (int)before);
	scratch_file(name, "of the program that it ran before exec");
	with = start(scratch(name));
	assert_false(run_untraced_has(without, dir));
	assert_true(run_untraced_has(with, dir)); /* as a child of a fork: its parent's */
	assert_false(run_untraced_has(before, dir));
	assert_int_equal(unlinkat(dir, name + 4, 0), 0);
	assert_true(run_untraced_has(with, dir)); /* an outside process removed it */
	kill(without, SIGKILL);
	waitid(P_PID, (id_t)without, &(siginfo_t){0}, WEXITED | WNOWAIT);
	assert_true(run_untraced_has(without, dir)); /* a zombie */
	stop(without);
	assert_true(run_untraced_has(without, dir));
	stop(with);
	stop(before);
	close(dir);
}

/* The words for that many processes. */
static void words(unsigned count, bool to_the_end, struct str *out)
{
	int dir = open_directory();
	struct run_trace *t;
	struct trace_set set;
	struct err err = {""};

	unlinkat(dir, RUN_TRACE_NAME, 0);
	assert_int_equal(run_trace_new(dir, &t, &err), 0);
	for (unsigned i = 1; i <= count; i++)
		run_untraced_note(t, getpid(), i);
	if (to_the_end)
		run_untraced_total(t, count);
	run_trace_close(t, 0);
	close(dir);
	assert_int_equal(trace_set_open(scratch("run"), &set, &err), 0);
	str_clear(out);
	unrecorded_processes(set.supervisor, out);
	trace_set_close(&set);
}

static void is_said(void **state)
{
	struct str s = {0};
	char mine[64];

	words(0, true, &s);
	assert_int_equal(s.length, 0);
	unrecorded_processes(NULL, &s);
	assert_int_equal(s.length, 0);
	words(1, true, &s);
	assert_non_null(strstr(str_text(&s), "1 process left no trace"));
	snprintf(mine, sizeof(mine), "test-cmd-untrac (%d)", (int)getpid());
	assert_non_null(strstr(str_text(&s), mine));
	words(3, false, &s); /* killed before the end */
	assert_non_null(strstr(str_text(&s), "3 processes left no trace"));
	words(40, true, &s);
	assert_non_null(strstr(str_text(&s), "40 processes left no trace"));
	assert_non_null(strstr(str_text(&s), ", ..."));
	str_free(&s);
}

/* Starts of two processes: equal ones are added up, the most frequent come first. */
static void are_named(void **state)
{
	static const struct trace_unrecorded programs[] = {
	    {TRACE_UNRECORDED_STATIC, 2, "/bin/static"},
	    {TRACE_UNRECORDED_TAKEN, 7, "/half"},
	    {TRACE_UNRECORDED_MUSL, 3, "/bin/musl"},
	    {77, 1, "/bin/new\n"},
	};
	struct trace_header h = {.major = TRACE_MAJOR,
	    .minor = TRACE_MINOR,
	    .header_bytes = TRACE_HEADER_BYTES,
	    .slot_bytes = TRACE_SLOT_BYTES,
	    .unrecorded = 8};
	struct str s = {0};
	struct trace_set set;
	struct err err = {""};
	char name[32];
	int dir = open_directory(), fd;

	memcpy(h.magic, TRACE_MAGIC, 8);
	memcpy(h.unrecorded_program, programs, sizeof(programs));
	unlinkat(dir, RUN_TRACE_NAME, 0);
	for (int i = 0; i < 2; i++) {
		h.pid = (uint32_t)(4000000 + i);
		snprintf(name, sizeof(name), "%u.0.whyoom", h.pid);
		fd = openat(dir, name, O_RDWR | O_CREAT | O_TRUNC, 0600);
		assert_int_equal(write(fd, &h, sizeof(h)), sizeof(h));
		assert_int_equal(ftruncate(fd, TRACE_SLOT_BYTES), 0);
		close(fd);
	}
	close(dir);
	assert_int_equal(trace_set_open(scratch("run"), &set, &err), 0);
	unrecorded_programs(set.images, set.count, &s);
	assert_non_null(strstr(str_text(&s), "/bin/musl (linked with musl, started 6 times), "
					     "/bin/static (linked statically, started 4 times), "));
	assert_non_null(
	    strstr(str_text(&s), "(for a reason that this version of whyoom does not know"));
	assert_non_null(strstr(str_text(&s), ", and 4 starts of others"));
	assert_null(strchr(str_text(&s), '\n'));
	assert_null(strstr(str_text(&s), "/half"));
	assert_string_equal(unrecorded_key(TRACE_UNRECORDED_DIRECTORY), "directory");
	assert_string_equal(unrecorded_key(1000), "unknown");
	trace_set_close(&set);
	str_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    scratch_test(who_has_one),
	    scratch_test(is_said),
	    scratch_test(are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
