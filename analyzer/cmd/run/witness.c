/*
 * witness.c - see witness.h.
 */
#include "cmd/run/witness.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmd/supervise/proc.h"
#include "util/clock_ns.h"

#define MS 1000000ull
#define WAIT_MS 30 /* systemd signals the processes of a service one after the other */
#define BUSY_MS 2000 /* where it has been sent the signal, and got no CPU since: in steps of */
#define MORE_MS 5
#define OLD_MS 500 /* no answer to a signal that arrived just now */

struct run_witness_page {
	unsigned seen[RUN_WITNESS_SIGNALS];
	uint64_t last_ns[RUN_WITNESS_SIGNALS]; /* CLOCK_MONOTONIC */
};

static void __attribute__((noreturn))
watch(struct run_witness_page *page, pid_t parent, char **argv)
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

		if (sig > 0 && sig < RUN_WITNESS_SIGNALS) {
			__atomic_store_n(
			    &page->last_ns[sig], clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELAXED);
			__atomic_add_fetch(&page->seen[sig], 1, __ATOMIC_RELEASE);
		}
	}
}

void run_witness_start(struct run_witness *w, char **argv)
{
	pid_t parent = getpid();
	void *page =
	    mmap(NULL, sizeof(*w->page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	*w = (struct run_witness){0};
	if (page == MAP_FAILED)
		return;
	w->page = page;
	w->pid = fork();
	if (w->pid == 0)
		watch(page, parent, argv);
	if (w->pid < 0) /* no more processes allowed: then without */
		w->pid = 0;
}

/* Two of a kind in quick succession are one to us when the second came before we took the first,
 * and may still be two to the witness. That second one says nothing about the next. */
static bool is_left_over(uint64_t last_ns, uint64_t asked_ns, uint64_t at)
{
	return last_ns < asked_ns + WAIT_MS * MS && last_ns + OLD_MS * MS < at;
}

bool run_witness_saw(struct run_witness *w, int sig)
{
	const struct timespec ms = {.tv_nsec = MS};
	uint64_t asked = clock_ns(CLOCK_MONOTONIC), before;
	bool saw = false, pending = false;

	if (!w->pid || sig < 1 || sig >= RUN_WITNESS_SIGNALS)
		return false;
	before = w->asked_ns[sig];
	w->asked_ns[sig] = asked;
	for (int left = WAIT_MS, all = 0; !saw && left >= 0; left--, all++) {
		unsigned seen = __atomic_load_n(&w->page->seen[sig], __ATOMIC_ACQUIRE);
		uint64_t last = __atomic_load_n(&w->page->last_ns[sig], __ATOMIC_RELAXED);

		saw = seen != w->noted[sig] && !is_left_over(last, before, asked);
		w->noted[sig] = seen;
		if (saw)
			break;
		if (!left && all < BUSY_MS) {
			/* Once more when it has taken it, before it says so. */
			bool was = pending;

			pending = run_proc_pending(w->pid, sig);
			if (pending || was)
				left = MORE_MS;
		}
		nanosleep(&ms, NULL);
	}
	return saw;
}

void run_witness_stop(struct run_witness *w)
{
	if (w->pid) {
		kill(w->pid, SIGKILL);
		waitpid(w->pid, NULL, 0);
	}
	if (w->page)
		munmap(w->page, sizeof(*w->page));
	*w = (struct run_witness){0};
}
