#include "cmd/watch/job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/clock_ns.h"
#include "util/num.h"

#define NICE 10 /* the recorded program comes first */

#ifndef SYS_close_range /* older headers; the number is the same everywhere */
#define SYS_close_range 436
#endif

extern char **environ;

static void begin(struct job *j, pid_t pid, double seconds)
{
	*j = (struct job){
	    .pid = pid, .until_ns = num_sum(clock_ns(CLOCK_MONOTONIC), num_ns(seconds))};
}

/* Return the environment with these variables, which take the place of others of their names. The
 * strings are not copied. NULL: no memory. */
static char **join(char *const *variables)
{
	size_t count = 0, n = 0;
	char **all;

	for (char **e = environ; *e; e++)
		count++;
	for (char *const *v = variables; *v; v++)
		count++;
	all = calloc(count + 1, sizeof(*all));
	for (char *const *v = variables; all && *v; v++)
		all[n++] = *v;
	for (char **e = environ; all && *e; e++) {
		size_t name = strcspn(*e, "=");
		bool replaced = false;

		for (char *const *v = variables; *v && !replaced; v++)
			replaced = !strncmp(*v, *e, name) && (*v)[name] == '=';
		if (!replaced)
			all[n++] = *e;
	}
	return all;
}

int job_start_command(
    struct job *j, const char *command, char *const *variables, bool quiet, double seconds)
{
	char sh[] = "sh", c[] = "-c";
	char *const argv[] = {sh, c, (char *)(uintptr_t)command, NULL};
	char **all = join(variables);
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, usual;
	pid_t pid;
	int r;

	if (!all)
		return -ENOMEM;
	sigemptyset(&none);
	sigemptyset(&usual);
	for (int s = SIGHUP; s <= SIGCONT; s++)
		if (s != SIGKILL)
			sigaddset(&usual, s);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	if (quiet)
		posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&files, 2, 1);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &usual);
	posix_spawnattr_setflags(
	    &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	r = posix_spawn(&pid, "/bin/sh", &files, &attributes, argv, all);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	free(all);
	if (r)
		return -r;
	begin(j, pid, seconds);
	return 0;
}

/* The server's sockets would stay open as long as the child. */
static void close_all_but(int kept)
{
	if (kept > 3)
		syscall(SYS_close_range, 3u, (unsigned)kept - 1, 0u);
	syscall(SYS_close_range, (unsigned)num_most(3, (uint64_t)kept + 1), ~0u, 0u);
}

static _Noreturn void be_child(
    int (*work)(void *arg, int result), void *arg, int result, bool quiet)
{
	static const int usual[] = {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT, SIGWINCH, SIGPIPE};
	sigset_t none;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setpgid(0, 0);
	setpriority(PRIO_PROCESS, 0, NICE);
	if (null >= 0) {
		dup2(null, 0);
		dup2(quiet ? null : 2, 1);
		if (quiet)
			dup2(null, 2);
	}
	for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++)
		signal(usual[i], SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	close_all_but(result);
	_exit(work(arg, result));
}

int job_start_work(struct job *j, int (*work)(void *arg, int result), void *arg, int *told,
    bool quiet, double seconds)
{
	int ends[2], rc;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (!pid)
		be_child(work, arg, ends[1], quiet);
	rc = pid < 0 ? -errno : 0;
	close(ends[1]);
	if (rc) {
		close(ends[0]);
		return rc;
	}
	setpgid(pid, pid); /* also here, so that an early kill finds the group */
	begin(j, pid, seconds);
	*told = ends[0];
	return 0;
}

bool job_take(int *told, void *into, size_t bytes)
{
	bool whole = read(*told, into, bytes) == (ssize_t)bytes;

	close(*told);
	*told = -1;
	return whole;
}

bool job_ended(struct job *j, struct job_end *out)
{
	struct rusage used;
	int status;
	pid_t r;

	if (!j->pid)
		return false;
	if (!j->late && clock_ns(CLOCK_MONOTONIC) >= j->until_ns) {
		j->late = true;
		kill(-j->pid, SIGKILL);
	}
	r = wait4(j->pid, &status, WNOHANG, &used);
	if (!r || (r < 0 && errno == EINTR))
		return false;
	*out = (struct job_end){.status = r < 0 ? 0 : status, .late = j->late};
	if (r > 0)
		out->cpu_seconds = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
				   (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
	j->pid = 0;
	return true;
}

void job_kill(struct job *j)
{
	if (!j->pid)
		return;
	kill(-j->pid, SIGKILL);
	while (waitpid(j->pid, NULL, 0) < 0 && errno == EINTR)
		;
	j->pid = 0;
}
