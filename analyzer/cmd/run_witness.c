/*
 * run_witness.c - see run_witness.h.
 */
#include "cmd/run_witness.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 30 /* systemd signals the processes of a service one after the other */

static void __attribute__((noreturn)) watch(volatile unsigned *seen, pid_t parent, char **argv)
{
	siginfo_t si;
	sigset_t all;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	/* `pkill whyoom` is meant for the supervisor, and must not look like a signal to the group.
	 */
	prctl(PR_SET_NAME, "group-witness");
	for (; *argv; argv++)
		memset(*argv, ' ', strlen(*argv));
	syscall(SYS_close_range, 0u, ~0u, 0u);
	sigfillset(&all);
	for (;;) {
		int sig = sigwaitinfo(&all, &si);

		if (sig > 0 && sig < 65)
			__atomic_add_fetch(&seen[sig], 1, __ATOMIC_RELEASE);
	}
}

void run_witness_start(struct run_witness *w, char **argv)
{
	pid_t parent = getpid();
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	*w = (struct run_witness){0};
	if (page == MAP_FAILED)
		return;
	w->seen = page;
	w->pid = fork();
	if (w->pid == 0)
		watch(page, parent, argv);
	if (w->pid < 0) /* no more processes allowed: then without */
		w->pid = 0;
}

bool run_witness_saw(struct run_witness *w, int sig)
{
	const struct timespec ms = {.tv_nsec = 1000000};

	if (!w->pid || sig < 1 || sig > 64)
		return false;
	for (int i = 0; i <= WAIT_MS; i++) {
		unsigned seen = __atomic_load_n(&w->seen[sig], __ATOMIC_ACQUIRE);

		if (seen != w->noted[sig]) {
			w->noted[sig] = seen;
			return true;
		}
		nanosleep(&ms, NULL);
	}
	return false;
}

void run_witness_stop(struct run_witness *w)
{
	if (w->pid) {
		kill(w->pid, SIGKILL);
		waitpid(w->pid, NULL, 0);
	}
	if (w->seen)
		munmap((void *)w->seen, 4096);
	*w = (struct run_witness){0};
}
