/*
 * child.c - see child.h. No handlers: every signal is blocked and taken by sigtimedwait(),
 * so that the dispositions which the target inherits are those that we found.
 */
#include "cmd/run/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmd/run/spare.h"
#include "cmd/supervise/proc.h"
#include "cmd/supervise/sample.h"
#include "util/clock_ns.h"

#define SECOND 1000000000ull
#define GO 'g'

void run_child_prepare(struct run_child *c, char **argv)
{
	struct sigaction standard = {.sa_handler = SIG_DFL};
	sigset_t all;

	*c = (struct run_child){0};
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &c->mask);
	/* Ignored, as some callers leave it, it would reap our child before we can ask. */
	sigaction(SIGCHLD, &standard, &c->chld);
	run_witness_start(&c->witness, argv);
}

void run_child_restore(struct run_child *c)
{
	run_witness_stop(&c->witness);
	sigaction(SIGCHLD, &c->chld, NULL);
	sigprocmask(SIG_SETMASK, &c->mask, NULL);
}

/* Variables that name the pid of the process that they are meant for. */
static void own_pid(pid_t parent)
{
	static const char *const names[] = {"LISTEN_PID", "WATCHDOG_PID", "SYSTEMD_EXEC_PID", NULL};
	char number[16];

	for (const char *const *name = names; *name; name++) {
		const char *value = getenv(*name);

		if (value && atol(value) == (long)parent) {
			snprintf(number, sizeof(number), "%d", (int)getpid());
			setenv(*name, number, 1);
		}
	}
}

static void __attribute__((noreturn)) become(const struct run_child *c,
    const struct run_program *program, char **argv, pid_t parent, int tell)
{
	ssize_t n;
	char go;
	int error;

	/* Killed, we take the target with us, as if the signal had met it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	own_pid(parent);
	do
		n = read(tell, &go, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(127);
	sigaction(SIGCHLD, &c->chld, NULL);
	sigprocmask(SIG_SETMASK, &c->mask, NULL);
	/* execvp() would hand another machine's program to the shell, as if it were a script. */
	if (program->kind == RUN_PROGRAM_OTHER)
		execv(program->path, argv);
	else
		execvp(argv[0], argv);
	error = errno;
	if (write(tell, &error, sizeof(error)) < 0)
		_exit(126);
	_exit(127);
}

/* The terminal stopped the target: stop too, so that our shell sees it; when it continues us, the
 * target is continued as well. */
static void stop_along(const struct run_child *c, int sig)
{
	const struct timespec moment = {.tv_nsec = 20000000};
	struct run_proc_stat stat;
	sigset_t one, mask;

	sigemptyset(&one);
	sigaddset(&one, sig);
	if (sig == SIGSTOP) {
		kill(getpid(), SIGSTOP);
	} else {
		kill(getpid(), sig);
		sigprocmask(SIG_UNBLOCK, &one, &mask); /* it is delivered here */
		sigprocmask(SIG_SETMASK, &mask, NULL);
	}
	/* `fg` sends SIGCONT to the group; `kill -CONT` perhaps to us alone. */
	nanosleep(&moment, NULL);
	if (run_proc_stat(c->pid, &stat) && stat.state == 'T')
		kill(c->pid, SIGCONT);
}

static bool is_fatal(int sig)
{
	return sig == SIGTERM || sig == SIGINT || sig == SIGHUP || sig == SIGQUIT;
}

static void hand_over(const struct run_child *c, const siginfo_t *si)
{
	if (si->si_code == SI_QUEUE)
		sigqueue(c->pid, si->si_signo, si->si_value);
	else
		kill(c->pid, si->si_signo);
}

static void pass_on(struct run_child *c, const siginfo_t *si)
{
	int sig = si->si_signo;
	bool group = run_witness_saw(&c->witness, sig);

	if (is_fatal(sig))
		c->relayed_kill = true;
	/* From the kernel: the terminal's, which the whole group gets; or about our own doings. */
	if (group || si->si_code > 0 || si->si_pid == c->pid || si->si_pid == getpid())
		return;
	hand_over(c, si);
}

/* A signal that came before the child was let go. The witness, which is older than the child,
 * cannot say whether the child got it as well; the child, in which it then waits, can. */
static void pass_on_early(struct run_child *c, const siginfo_t *si)
{
	int sig = si->si_signo;

	if (sig == SIGCHLD || (si->si_code <= 0 && si->si_pid == getpid()))
		return;
	/* Of the kernel's, the terminal's are meant for the group; others are about us. */
	if (si->si_code > 0 && sig != SIGINT && sig != SIGQUIT && sig != SIGTSTP && sig != SIGHUP)
		return;
	if (is_fatal(sig))
		c->relayed_kill = true;
	run_witness_saw(&c->witness, sig); /* gives a signal to everybody the time to go round */
	if (!run_proc_pending(c->pid, sig))
		hand_over(c, si);
}

static void pass_on_all_early(struct run_child *c)
{
	const struct timespec no_time = {0};
	sigset_t all;
	siginfo_t si;

	sigfillset(&all);
	if (c->early.si_signo)
		pass_on_early(c, &c->early);
	while (sigtimedwait(&all, &si, &no_time) > 0)
		pass_on_early(c, &si);
}

void run_child_keep(struct run_child *c, const siginfo_t *si)
{
	c->early = *si;
}

/* Waits for the child to execute. The error of that, 0 when it did or was killed before. */
static int await_exec(const struct run_child *c, int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	int error = 0;
	siginfo_t si;
	ssize_t n;

	/* Stopped here, by the terminal, it would keep us, and the terminal, forever. */
	while (poll(&poll_fd, 1, 50) <= 0) {
		si.si_pid = 0;
		if (!waitid(P_PID, (id_t)c->pid, &si, WSTOPPED | WNOHANG) && si.si_pid == c->pid)
			stop_along(c, si.si_status);
	}
	do
		n = read(fd, &error, sizeof(error));
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(error) ? error : 0;
}

int run_child_start(
    struct run_child *c, const struct run_program *program, char **argv, struct err *err)
{
	pid_t parent = getpid();
	int tell[2], error;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, tell))
		return err_set(err, -errno, "cannot make a pair of sockets: %s", strerror(errno));
	c->pid = fork();
	if (c->pid < 0) {
		error = errno;
		close(tell[0]);
		close(tell[1]);
		return err_set(err, -error, "cannot start a process: %s", strerror(error));
	}
	if (c->pid == 0) {
		close(tell[0]);
		become(c, program, argv, parent, tell[1]);
	}
	close(tell[1]);
	run_spare_begin();
	/* What came until the child existed is handed to it now; what comes later reaches it
	 * by itself, or through run_child_wait(). Either way it takes effect when it is let go. */
	pass_on_all_early(c);
	send(tell[0], &(char){GO}, 1, MSG_NOSIGNAL);
	error = await_exec(c, tell[0]);
	close(tell[0]);
	if (!error)
		return 0;
	waitpid(c->pid, NULL, 0);
	run_spare_end();
	return err_set(err, -error, "cannot run '%s': %s", argv[0], strerror(error));
}

void run_child_let_go(const int *keep)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;

	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		if (null > STDERR_FILENO)
			close(null);
	}
	while (d && (e = readdir(d))) {
		int fd = atoi(e->d_name);
		const int *k = keep;

		while (*k >= 0 && *k != fd)
			k++;
		if (e->d_name[0] != '.' && fd > STDERR_FILENO && *k < 0 && fd != dirfd(d))
			close(fd);
	}
	if (d)
		closedir(d);
}

/* Takes every change of state that waits for us; true when the target has ended. */
static bool reap(struct run_child *c, struct run_trace *trace, uint64_t terminal_stop_ns)
{
	bool ended = false;
	siginfo_t si;

	for (;;) {
		si.si_pid = 0;
		if (waitid(P_ALL, 0, &si, WEXITED | WSTOPPED | WNOHANG) || !si.si_pid)
			return ended;
		if (si.si_pid == c->witness.pid) {
			if (si.si_code != CLD_STOPPED)
				c->witness.pid = 0;
		} else if (si.si_pid == run_nvml_pid(c->nvml)) {
			if (si.si_code != CLD_STOPPED)
				run_nvml_gone(c->nvml);
		} else if (si.si_code == CLD_STOPPED) {
			int sig = si.si_status;

			if (si.si_pid == c->pid &&
			    (sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU ||
				(sig == SIGSTOP &&
				    clock_ns(CLOCK_MONOTONIC) - terminal_stop_ns < SECOND)))
				stop_along(c, sig);
		} else if (si.si_code != CLD_TRAPPED) {
			run_trace_child_end(
			    trace, si.si_pid, si.si_code, si.si_status, si.si_pid == c->pid);
			if (si.si_pid == c->pid) {
				c->code = si.si_code;
				c->status = si.si_status;
				ended = true;
			}
		}
	}
}

/* Until a signal comes, which is then taken, the cgroup is out of memory, or that time is over. The
 * signal; 0 or less: none. */
static int await_news(int signals, struct run_sampler *sampler, uint64_t due, siginfo_t *si)
{
	uint64_t t = clock_ns(CLOCK_MONOTONIC), rest = due > t ? due - t : 0;
	struct timespec ts = {.tv_sec = (time_t)(rest / SECOND), .tv_nsec = (long)(rest % SECOND)};
	struct pollfd fds[] = {{.fd = signals, .events = POLLIN},
	    {.fd = sampler ? run_sampler_fd(sampler) : -1, .events = POLLIN}};
	sigset_t all;

	sigfillset(&all);
	if (signals >= 0) {
		if (ppoll(fds, 2, &ts, NULL) > 0 && fds[1].revents)
			run_sampler_woken(sampler, clock_ns(CLOCK_MONOTONIC));
		ts = (struct timespec){0};
	}
	return sigtimedwait(&all, si, &ts);
}

int run_child_wait(struct run_child *c, struct run_trace *trace, int dir, bool off)
{
	struct run_sampler *sampler = run_sampler_new(trace, c->pid, dir, off);
	uint64_t due = clock_ns(CLOCK_MONOTONIC), terminal_stop_ns = 0;
	sigset_t all;
	int signals;

	sigfillset(&all);
	/* Only to see that one has come: without a descriptor it is waited for as it always was. */
	signals = signalfd(-1, &all, SFD_CLOEXEC);
	for (;;) {
		uint64_t t = clock_ns(CLOCK_MONOTONIC);
		siginfo_t si;
		int sig;

		if (reap(c, trace, terminal_stop_ns))
			break;
		if (t >= due) {
			due = sampler ? run_sampler_tick(sampler, t) : t + SECOND;
			if (sampler)
				run_nvml_tick(c->nvml, trace, run_sampler_budget(sampler),
				    clock_ns(CLOCK_MONOTONIC));
		}
		sig = await_news(signals, sampler, due, &si);
		if (sig <= 0 || sig == SIGCHLD)
			continue;
		if (sig == SIGTSTP && si.si_code > 0)
			terminal_stop_ns = clock_ns(CLOCK_MONOTONIC);
		pass_on(c, &si);
	}
	if (sampler)
		run_sampler_last(sampler);
	c->group_short = sampler && run_sampler_short(sampler);
	run_sampler_free(sampler);
	if (signals >= 0)
		close(signals);
	return c->code == CLD_EXITED ? c->status : 128 + c->status;
}
