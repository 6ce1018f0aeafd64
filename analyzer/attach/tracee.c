/*
 * tracee.c - see tracee.h.
 */
#include "attach/tracee.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "util/clock_ns.h"

#define STEP_MS 1000u /* for one instruction, which is a system call at most */

int tracee_seize(pid_t tid, struct tracee *out)
{
	*out = (struct tracee){.tid = tid};
	return ptrace(PTRACE_SEIZE, tid, 0, 0) ? -errno : 0;
}

/* Takes a stop apart. 0; -ESRCH. */
static int stopped(struct tracee *t, int status)
{
	siginfo_t info;

	if (!WIFSTOPPED(status))
		return -ESRCH;
	t->stopped = true;
	t->signal = status >> 16 ? 0 : WSTOPSIG(status);
	/* A trap that we asked for is no signal for the program, whose default would be to die. */
	t->trap = t->signal == SIGTRAP && !ptrace(PTRACE_GETSIGINFO, t->tid, 0, &info) &&
		  info.si_code > 0 && info.si_code != SI_KERNEL;
	if (t->trap)
		t->signal = 0;
	t->job = status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) != SIGTRAP;
	return 0;
}

int tracee_wait(struct tracee *t, unsigned timeout_ms)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * 1000000u, now;
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	for (;;) {
		int status;
		pid_t pid = waitpid(t->tid, &status, __WALL | WNOHANG);
		struct timespec left;

		if (pid == t->tid)
			return stopped(t, status);
		if (pid < 0 && errno != EINTR)
			return -ESRCH;
		now = clock_ns(CLOCK_MONOTONIC);
		if (now >= end)
			return -ETIMEDOUT;
		/* One SIGCHLD may stand for several stops, and may have been taken already. */
		left.tv_sec = 0;
		left.tv_nsec = (long)(end - now < 20000000u ? end - now : 20000000u);
		sigtimedwait(&child, NULL, &left);
	}
}

int tracee_stop(struct tracee *t, unsigned timeout_ms)
{
	int rc = ptrace(PTRACE_INTERRUPT, t->tid, 0, 0) ? -errno : 0;

	while (!rc) {
		rc = tracee_wait(t, timeout_ms);
		if (rc || (!t->signal && !t->trap))
			break;
		rc = tracee_continue(t);
	}
	return rc;
}

/* A signal that would stop the process waits until the end. */
static int passed_on(struct tracee *t)
{
	int signal = t->signal;

	t->signal = 0;
	if (signal == SIGSTOP) {
		t->held = signal;
		signal = 0;
	}
	return signal;
}

int tracee_continue(struct tracee *t)
{
	t->stopped = false;
	return ptrace(PTRACE_CONT, t->tid, 0, passed_on(t)) ? -errno : 0;
}

int tracee_step(struct tracee *t)
{
	t->stopped = false;
	if (ptrace(PTRACE_SINGLESTEP, t->tid, 0, passed_on(t)))
		return -errno;
	return tracee_wait(t, STEP_MS);
}

void tracee_detach(struct tracee *t)
{
	if (!t->stopped && tracee_stop(t, STEP_MS))
		return;
	ptrace(PTRACE_DETACH, t->tid, 0, t->signal);
	t->stopped = false;
	/* Not by PTRACE_DETACH, which delivers only what the thread was stopped by. */
	if (t->held)
		kill(t->tid, t->held);
}
