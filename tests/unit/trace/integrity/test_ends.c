#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../events.h"

static struct trace *trace_of(struct compose *c, pid_t pid)
{
	compose_begin(c);
	compose_header(c)->pid = (uint32_t)pid;
	compose_header(c)->end_how = 0;
	compose_chunk(c, 1, 1, 0, 0, 65536);
	put_alloc(c, 10, 0x1000, 1, 0);
	return open_composed(c);
}

/* A child that maps the file as the recorder does, until its pipe closes. */
static pid_t mapper(const char *path, int *end)
{
	int pipes[2], ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(pipes) | pipe(ready), 0);
	pid = fork();
	if (!pid) {
		int fd = open(path, O_RDWR);
		void *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);

		close(fd);
		close(pipes[1]);
		if (p == MAP_FAILED || write(ready[1], "x", 1) != 1 ||
		    read(pipes[0], &byte, 1) != 0)
			_exit(1);
		_exit(0);
	}
	close(pipes[0]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	*end = pipes[1];
	return pid;
}

static void runs_while_it_maps_the_file(void **state)
{
	struct compose c;
	struct trace *t = trace_of(&c, getpid());
	int end, status;
	pid_t pid;

	assert_false(trace_is_running(t)); /* the number lives, but another program has it */
	pid = mapper(c.path, &end);
	t->facts.pid = (uint32_t)pid;
	assert_true(trace_is_running(t));
	t->facts.end_how = TRACE_END_EXIT; /* it recorded its own end */
	assert_false(trace_is_running(t));
	t->facts.end_how = TRACE_END_NONE;
	close(end);
	siginfo_t info;
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_false(trace_is_running(t)); /* a zombie maps nothing */
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_false(trace_is_running(t));
	t->facts.pid = 0;
	assert_false(trace_is_running(t));
	trace_close(t);
	compose_free(&c);
}

static void the_parent_has_the_last_word(void **state)
{
	struct compose c;
	struct trace *t = trace_of(&c, 1 << 30);

	t->facts.end_how = TRACE_END_EXIT;
	trace_see_child_end(t, TRACE_END_SIGNAL, 11); /* exit() began, then it crashed */
	assert_int_equal(t->facts.end_how, TRACE_END_SIGNAL);
	assert_int_equal(t->facts.end_code, 11);
	trace_see_child_end(t, 77, 5);
	assert_int_equal(t->facts.end_how, TRACE_END_SIGNAL);
	trace_close(t);
	compose_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(runs_while_it_maps_the_file),
	    cmocka_unit_test(the_parent_has_the_last_word),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
