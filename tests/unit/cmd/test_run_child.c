#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/run_child.h"
#include "scratch.h"
#include "unit.h"

static int run(char **argv, struct run_child *child)
{
	struct run_program program;
	struct run_trace *t;
	struct err err;
	int dir, status;

	mkdir(scratch("run"), 0700);
	dir = open(scratch("run"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unlinkat(dir, RUN_TRACE_NAME, 0);
	run_program_look(argv[0], &program);
	run_child_prepare(child, argv);
	assert_int_equal(run_trace_new(dir, &t, &err), 0);
	status = run_child_start(child, &program, argv, &err);
	if (!status)
		status = run_child_wait(child, t, dir);
	run_child_restore(child);
	run_trace_close(t, status);
	close(dir);
	return status;
}

static int run_shell(const char *script, struct run_child *child)
{
	char text[256], *argv[] = {(char[]){"sh"}, (char[]){"-c"}, text, NULL};

	snprintf(text, sizeof(text), "%s", script);
	return run(argv, child);
}

static void exit_codes(void **state)
{
	struct run_child child;

	assert_int_equal(run_shell("exit 0", &child), 0);
	assert_int_equal(run_shell("exit 200", &child), 200);
	assert_int_equal(child.code, CLD_EXITED);
	assert_int_equal(run_shell("kill -9 $$", &child), 137);
	assert_int_equal(child.code, CLD_KILLED);
	assert_int_equal(child.status, SIGKILL);
	assert_int_equal(run_exit_code(CLD_DUMPED, SIGABRT), 134);
}

static void errors_of_exec(void **state)
{
	char *argv[] = {(char[]){"/no/such/program"}, NULL};
	struct run_child child;

	assert_int_equal(run(argv, &child), -ENOENT);
	scratch_file("plain", "text");
	argv[0] = (char *)scratch("plain");
	assert_int_equal(run(argv, &child), -EACCES);
}

static void mask_is_given_back(void **state)
{
	char *argv[] = {(char[]){"grep"}, (char[]){"-q"}, (char[]){"^SigBlk:.*00800$"},
	    (char[]){"/proc/self/status"}, NULL};
	sigset_t odd, after;
	struct run_child child;

	sigemptyset(&odd);
	sigaddset(&odd, SIGUSR2);
	sigprocmask(SIG_SETMASK, &odd, NULL);
	signal(SIGCHLD, SIG_IGN); /* or its end could not be seen */
	assert_int_equal(run(argv, &child), 0); /* 1: the mask was another one */
	sigprocmask(SIG_SETMASK, NULL, &after);
	assert_true(sigismember(&after, SIGUSR2));
	assert_false(sigismember(&after, SIGTERM));
	assert_ptr_equal(signal(SIGCHLD, SIG_DFL), SIG_IGN);
}

static void lets_go_of_descriptors(void **state)
{
	int p[2], keep, status;
	pid_t pid;
	char c;

	assert_int_equal(pipe(p), 0);
	keep = dup(STDERR_FILENO);
	pid = fork();
	if (pid == 0) {
		close(p[0]);
		run_child_let_go((const int[]){keep, -1});
		_exit(fcntl(p[1], F_GETFD) >= 0 || fcntl(keep, F_GETFD) < 0 ||
		      fcntl(STDERR_FILENO, F_GETFD) < 0 || read(STDIN_FILENO, &c, 1) != 0);
	}
	close(p[1]);
	assert_int_equal(read(p[0], &c, 1), 0); /* nobody has it any more */
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	close(p[0]);
	close(keep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    scratch_test(exit_codes),
	    scratch_test(errors_of_exec),
	    scratch_test(mask_is_given_back),
	    scratch_test(lets_go_of_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
