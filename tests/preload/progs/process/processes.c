/*
 * processes.c - children of every kind. Prints `pid WHAT PID` for each process under test.
 *
 * - fork: a child that allocates; the parent goes on
 * - fork-threads: forks again and again while threads allocate
 * - latecomer: children whose first events are those of threads that they made
 * - setenv: children whose first event is made in setenv(), after it freed the environment's old
 * array
 * - loader-held, loader-held-raw: forks while another thread holds the loader's list of modules;
 *   the child opens, asks and closes loaded libraries
 * - storm: four threads fork children as fast as they can, while three others allocate; the
 *   children allocate and end in four ways
 * - raw-fork: syscall(SYS_clone) as fork, in which the child allocates
 * - vfork: vfork, then exec of this program (`child`)
 * - spawn: posix_spawn of this program (`child`)
 * - exec N: allocates, then replaces itself N times
 * - exec-fails: execve of a missing file, then goes on allocating
 * - true: does nothing
 * - child: allocates a little
 * - exit-now: allocates, then _exit(7)
 * - abort: allocates, then aborts
 * - segv: allocates, then touches address 16
 * - tree: three generations, each allocating
 */
#include "../oracle.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static void some(int n, size_t size)
{
	for (int i = 0; i < n; i++)
		o_free(o_malloc(size));
}

static void say(const char *what, pid_t pid)
{
	char line[64];
	int n = snprintf(line, sizeof line, "pid %s %d\n", what, (int)pid);
	CHECK(write(1, line, (size_t)n) == n);
}

static int ended(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	return status;
}

/* the child's work of each kind: its own bracket */
static void child_work(void)
{
	oracle_tid = 0;
	oracle_begin();
	some(500, 321);
	oracle_end();
}

static void forks(int raw)
{
	oracle_begin();
	some(100, 111);
	void *kept = o_malloc(99);
	pid_t pid = raw ? (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) : fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		child_work();
		free(kept);
		if (raw)
			_exit(3);
		exit(3);
	}
	say("child", pid);
	some(100, 112);
	CHECK(WEXITSTATUS(ended(pid)) == 3);
	some(100, 113);
	o_free(kept);
	oracle_end();
}

static void *busy(void *arg)
{
	oracle_begin();
	for (int i = 0; i < 20000; i++)
		o_free(o_malloc((size_t)(100 + i % 100)));
	oracle_end();
	return arg;
}

static void fork_threads(void)
{
	pthread_t t[3];

	for (int i = 0; i < 3; i++)
		CHECK(pthread_create(&t[i], NULL, busy, NULL) == 0);
	for (int i = 0; i < 60; i++) {
		pid_t pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			child_work();
			exit(0);
		}
		if (i % 20 == 0)
			say("child", pid);
		CHECK(ended(pid) == 0);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
}

static char *self;
#define STORM_CHILDREN 100

/* Each child ends in another way, and its status tells which. */
static void *forking(void *arg)
{
	for (long i = 0; i < STORM_CHILDREN; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid == 0) {
			for (int k = 0; k < 40; k++)
				free(malloc((size_t)(321 + k % 3)));
			if (i % 4 == 0)
				exit(11);
			if (i % 4 == 1)
				_exit(12);
			if (i % 4 == 2)
				execl(self, self, "true", NULL);
			abort();
		}
		int status = ended(pid);
		int wanted = i % 4 == 3 ? SIGABRT : i % 4 == 2 ? 0 : (int)(11 + i % 4) << 8;

		if ((status & ~0x80) != wanted) /* 0x80: it left a core */
			fprintf(stderr, "child %ld: status %#x, not %#x\n", i, status, wanted);
		CHECK((status & ~0x80) == wanted);
	}
	return arg;
}

static void fork_storm(void)
{
	pthread_t t[3], f[4];

	for (int i = 0; i < 3; i++)
		CHECK(pthread_create(&t[i], NULL, busy, NULL) == 0);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&f[i], NULL, forking, NULL) == 0);
	for (int i = 0; i < 4; i++)
		pthread_join(f[i], NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
}

#define LATE_ROUNDS 2000

static _Atomic int late_ready;

static void *late_work(void *arg)
{
	for (int i = 0; i < LATE_ROUNDS; i++) {
		free(malloc(70000));
		if (i == 100)
			late_ready++;
	}
	return arg;
}

/* The thread that forked had a state in the parent, and allocates last, beside the others. */
static void latecomer(void)
{
	free(malloc(70001));
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			pthread_t t[2];
			for (int k = 0; k < 2; k++)
				CHECK(pthread_create(&t[k], NULL, late_work, NULL) == 0);
			while (late_ready < 2)
				sched_yield();
			late_work(NULL);
			for (int k = 0; k < 2; k++)
				CHECK(pthread_join(t[k], NULL) == 0);
			exit(0);
		}
		CHECK(ended(pid) == 0);
	}
}

/* libc's array of n variables and one more takes n + 2 pointers: 512 bytes with the 63rd. */
static void setenv_after_fork(void)
{
	char name[16];

	CHECK(clearenv() == 0);
	for (int i = 0; i < 62; i++) {
		snprintf(name, sizeof name, "V%d", i);
		CHECK(setenv(name, "x", 1) == 0);
	}
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			CHECK(setenv("LAST", "y", 1) == 0);
			free(malloc(70000));
			exit(strcmp(getenv("V7"), "x") || strcmp(getenv("LAST"), "y"));
		}
		CHECK(ended(pid) == 0);
	}
}

static _Atomic int at_list, may_leave;

static int stay_at_list(struct dl_phdr_info *info, size_t size, void *arg)
{
	at_list = 1;
	while (!may_leave)
		sched_yield();
	return 1;
}

static void *hold_list(void *arg)
{
	dl_iterate_phdr(stay_at_list, NULL);
	return arg;
}

/* Takes another of the loader's locks than that of its list, since no module comes or goes. */
static void child_links(void)
{
	void *by_name = dlopen("libc.so.6", RTLD_NOW), *by_path;

	CHECK(by_name);
	by_path = dlopen(((struct link_map *)by_name)->l_name, RTLD_NOW);
	CHECK(by_path == by_name);
	CHECK(dlsym(by_path, "malloc_trim") && !dlsym(by_path, "cuMemAlloc_v2"));
	CHECK(!dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
	CHECK(!dlclose(by_path) && !dlclose(by_name));
	for (int i = 0; i < 3; i++) { /* the levels, at which modules are looked for */
		usleep(110000);
		free(malloc(70002));
	}
}

/* In the child no thread will ever release the loader's lock: a thread that takes it waits for
 * ever. */
static void loader_held(int raw)
{
	pthread_t t;

	free(malloc(70001));
	CHECK(pthread_create(&t, NULL, hold_list, NULL) == 0);
	while (!at_list)
		sched_yield();
	pid_t pid = raw ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		child_work();
		child_links();
		exit(3);
	}
	say("child", pid);
	int status = ended(pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	may_leave = 1;
	CHECK(pthread_join(t, NULL) == 0);
}

static void vforks(char **argv)
{
	oracle_begin();
	for (int i = 0; i < 20; i++) {
		some(10, 111);
		pid_t pid = vfork();
		CHECK(pid >= 0);
		if (pid == 0) {
			execl(argv[0], argv[0], "child", NULL);
			_exit(127);
		}
		if (i == 0)
			say("child", pid);
		CHECK(ended(pid) == 0);
	}
	oracle_end();
}

static void spawns(char **argv)
{
	oracle_begin();
	for (int i = 0; i < 20; i++) {
		char *args[] = {argv[0], "child", NULL};
		pid_t pid;

		o_free(o_malloc(111));
		CHECK(posix_spawn(&pid, argv[0], NULL, NULL, args, environ) == 0);
		if (i == 0)
			say("child", pid);
		CHECK(ended(pid) == 0);
	}
	/* one that fails in the child: it must leave nothing behind */
	char *args[] = {"/does/not/exist", NULL};
	pid_t pid;
	CHECK(posix_spawn(&pid, args[0], NULL, NULL, args, environ) == ENOENT);
	o_free(o_malloc(112));
	oracle_end();
}

static void tree(int depth)
{
	oracle_tid = 0;
	oracle_begin();
	some(50, (size_t)(200 + depth));
	oracle_end();
	for (int i = 0; i < 2 && depth > 0; i++) {
		pid_t pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			tree(depth - 1);
			exit(0);
		}
		say("child", pid);
		CHECK(ended(pid) == 0);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 0;

	if (!strcmp(what, "true"))
		return 0;
	self = argv[0];
	oracle_open();
	if (!strcmp(what, "fork")) {
		forks(0);
	} else if (!strcmp(what, "latecomer")) {
		latecomer();
	} else if (!strcmp(what, "setenv")) {
		setenv_after_fork();
	} else if (!strcmp(what, "loader-held") || !strcmp(what, "loader-held-raw")) {
		loader_held(!strcmp(what, "loader-held-raw"));
	} else if (!strcmp(what, "storm")) {
		fork_storm();
	} else if (!strcmp(what, "raw-fork")) {
		forks(1);
	} else if (!strcmp(what, "fork-threads")) {
		fork_threads();
	} else if (!strcmp(what, "vfork")) {
		vforks(argv);
	} else if (!strcmp(what, "spawn")) {
		spawns(argv);
	} else if (!strcmp(what, "exec")) {
		char next[16];

		some(300, (size_t)(1000 + n));
		free(malloc(ORACLE_MARK));
		snprintf(next, sizeof next, "%d", n - 1);
		if (n > 0)
			execl(argv[0], argv[0], "exec", next, NULL);
		return n;
	} else if (!strcmp(what, "exec-fails")) {
		oracle_begin();
		some(10, 50);
		CHECK(execl("/does/not/exist", "x", NULL) == -1 && errno == ENOENT);
		some(10, 51);
		oracle_end();
	} else if (!strcmp(what, "child")) {
		some(500, 654);
	} else if (!strcmp(what, "exit-now")) {
		some(500, 123);
		_exit(7);
	} else if (!strcmp(what, "abort")) {
		some(500, 123);
		abort();
	} else if (!strcmp(what, "segv")) {
		some(500, 123);
		*(volatile int *)16 = 1;
	} else if (!strcmp(what, "tree")) {
		tree(3);
	} else {
		return 96;
	}
	return 0;
}
