/* What /proc says of this process and its children is read as it is. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/target.h"

static void handle(int signal)
{
	(void)signal;
}

static void test_self(void **state)
{
	struct target t;
	struct err err;

	(void)state;
	/* The name may have any character. */
	prctl(PR_SET_NAME, "a) R (b) 1 2");
	signal(SIGUSR1, handle);
	assert_int_equal(target_read(getpid(), &t, &err), 0);
	assert_string_equal(t.name, "a) R (b) 1 2");
	assert_int_equal(t.state, 'R');
	assert_int_equal(t.leader, getpid());
	assert_int_equal(t.uid, geteuid());
	assert_int_equal(t.gid, getegid());
	assert_false(t.kernel);
	assert_false(t.other_mounts);
	assert_true(t.caught >> (SIGUSR1 - 1) & 1);
	assert_false(t.caught >> (SIGUSR2 - 1) & 1);
	target_fini(&t);
}

static void test_none(void **state)
{
	struct target t;
	struct err err;
	pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	assert_int_equal(target_read(pid, &t, &err), -ESRCH);
	assert_non_null(strstr(err.text, "there is no process"));
	target_fini(&t);
}

static void test_states(void **state)
{
	pid_t pid = fork();
	struct target t;
	siginfo_t info;

	(void)state;
	if (!pid) {
		raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED), 0);
	assert_int_equal(target_read(pid, &t, NULL), 0);
	assert_int_equal(t.state, 'T');
	target_fini(&t);
	kill(pid, SIGCONT);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(target_read(pid, &t, NULL), 0);
	assert_int_equal(t.state, 'Z');
	/* It has no mappings any more. */
	if (!target_read_maps(&t))
		assert_int_equal(t.maps.count, 0);
	target_fini(&t);
	waitpid(pid, NULL, 0);
}

static void test_maps(void **state)
{
	struct target t = {.pid = getpid()};
	const struct target_map *code, *libc;

	(void)state;
	assert_int_equal(target_read_maps(&t), 0);
	assert_int_equal(target_read_maps(&t), 0); /* once more */
	code = target_map_at(&t, (uintptr_t)test_maps);
	assert_non_null(code);
	assert_true(code->executable && code->inode);
	assert_true(target_is_file(code, "test-attach-target"));
	assert_false(target_is_file(code, "est-attach-target"));
	assert_true(target_is_file(target_program(&t), "test-attach-target"));
	libc = target_module(&t, "libc.so.6");
	assert_non_null(libc);
	assert_int_equal(libc->offset, 0);
	assert_null(target_module(&t, "libnone"));
	assert_null(target_map_at(&t, 1));
	assert_null(target_map_at(&t, UINT64_MAX));
	for (size_t i = 1; i < t.maps.count; i++)
		assert_true(t.maps.items[i].lo >= t.maps.items[i - 1].hi);
	target_fini(&t);
}

static pid_t spinning;
static volatile int stop;

static void *spin(void *arg)
{
	spinning = (pid_t)syscall(SYS_gettid);
	while (!stop)
		;
	return arg;
}

static void test_threads(void **state)
{
	struct target_thread one;
	target_threads all = {0};
	pthread_t thread;

	(void)state;
	pthread_create(&thread, NULL, spin, NULL);
	do
		assert_int_equal(target_read_thread(getpid(), getpid(), &one), 0);
	while (!spinning || target_read_thread(getpid(), spinning, &one) || one.ran < 2);
	assert_int_equal(one.tid, spinning);
	assert_int_equal(target_read_threads(getpid(), &all), 0);
	assert_int_equal(all.count, 2);
	/* Both run now; the one that ran more is first. */
	assert_int_equal(all.items[0].state, 'R');
	assert_true(all.items[1].state != 'R' || all.items[0].ran >= all.items[1].ran);
	stop = 1;
	pthread_join(thread, NULL);
	assert_int_equal(target_read_thread(getpid(), spinning, &one), -ESRCH);
	vec_free(&all);
}

static void test_pending(void **state)
{
	struct target_thread one;
	sigset_t set;

	(void)state;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGUSR2);
	/* It is blocked, so it ends no wait. */
	assert_int_equal(target_read_thread(getpid(), getpid(), &one), 0);
	assert_false(one.pending);
	sigwaitinfo(&set, NULL);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void test_memory(void **state)
{
	char here[16] = "", there[16] = "fifteen letters";

	(void)state;
	assert_true(target_peek(getpid(), (uintptr_t)there, here, sizeof(here)));
	assert_string_equal(here, there);
	assert_true(target_poke(getpid(), (uintptr_t)there, "other", 6));
	assert_string_equal(there, "other");
	assert_false(target_peek(getpid(), 16, here, sizeof(here)));
	assert_false(target_poke(getpid(), 16, here, sizeof(here)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_self),
	    cmocka_unit_test(test_none),
	    cmocka_unit_test(test_states),
	    cmocka_unit_test(test_maps),
	    cmocka_unit_test(test_threads),
	    cmocka_unit_test(test_pending),
	    cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
