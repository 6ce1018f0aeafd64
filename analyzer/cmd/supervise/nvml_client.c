/*
 * nvml_client.c - see nvml_client.h.
 */
#include "cmd/supervise/nvml_client.h"
#include "cmd/run/spare.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmd/supervise/nvml.h"

#define MS 1000000ull
#define REST_NS (10000 * MS) /* an unchanged device is written again after this */
#define LEAVE_MS 100 /* for the helper to end by itself */

/* What was written last of a device. */
struct written {
	uint64_t free, total, time_ns;
	uint32_t process_count;
	bool defined;
	struct nvml_process processes[NVML_PROCESSES];
};

struct run_nvml {
	pid_t pid;
	int fd;
	bool asked;
	uint64_t cost_ns; /* of the last question */
	struct written written[NVML_DEVICES];
	struct nvml_answer answer;
};

bool run_nvml_present(void)
{
	return !access("/dev/nvidiactl", F_OK) || !access("/dev/dxg", F_OK);
}

static void __attribute__((noreturn))
become(const char *helper, const char *library, int fd, pid_t parent)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	run_spare_end(); /* it may grow, by the driver's library */
	if (getppid() != parent || dup2(fd, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
	    dup2(null, STDERR_FILENO) < 0)
		_exit(127);
	/* It is neither recorded nor meant to say what the target's copy says. */
	unsetenv("LD_PRELOAD");
	setenv("WHYOOM_SIMGPU_QUIET", "1", 1);
	execl(helper, "whyoom-nvml", library, (char *)NULL);
	_exit(127);
}

struct run_nvml *run_nvml_start(const char *helper, const char *library)
{
	struct run_nvml *n = calloc(1, sizeof(*n));
	pid_t parent = getpid();
	int ends[2];

	if (!n)
		return NULL;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
		free(n);
		return NULL;
	}
	n->pid = fork();
	if (n->pid == 0)
		become(helper, library, ends[1], parent);
	close(ends[1]);
	n->fd = ends[0];
	if (n->pid > 0)
		return n;
	close(n->fd);
	free(n);
	return NULL;
}

pid_t run_nvml_pid(const struct run_nvml *n)
{
	return n ? n->pid : 0;
}

void run_nvml_gone(struct run_nvml *n)
{
	n->pid = 0;
	if (n->fd >= 0)
		close(n->fd);
	n->fd = -1;
}

/* The processes that use a device, as one answer lists them. */
struct users {
	const struct nvml_process *list;
	uint32_t count;
};

static uint64_t used_by(struct users users, uint32_t pid)
{
	uint64_t sum = 0;

	/* A process that uses the device in several ways is listed several times. */
	for (uint32_t i = 0; i < users.count; i++)
		if (users.list[i].pid == pid)
			sum += users.list[i].bytes;
	return sum;
}

static void define(struct run_trace *t, uint32_t index, const struct nvml_device *d)
{
	char key[32], name[16];

	snprintf(name, sizeof(name), "gpu:%u", index);
	run_trace_space(t, index + 1, name);
	snprintf(key, sizeof(key), "gpu.%u.uuid", index);
	run_trace_info(t, key, d->uuid);
	snprintf(key, sizeof(key), "gpu.%u.name", index);
	run_trace_info(t, key, d->name);
}

/* Writes the processes of `users` that use another amount than before or, with `ended`, those that
 * are not in `other`, which is the new answer. */
static bool write_processes(struct run_trace *t, uint32_t space, struct event_level age,
    struct users users, struct users other, bool ended)
{
	bool any = false;

	for (uint32_t i = 0; i < users.count; i++) {
		uint32_t pid = users.list[i].pid;
		uint64_t now = ended ? 0 : used_by(users, pid), there = used_by(other, pid);
		struct event_level levels[] = {{TRACE_LEVEL_DEV_USED, now}, age};

		if (used_by((struct users){users.list, i}, pid) || /* written already */
		    (ended ? there > 0 : there == now))
			continue;
		run_trace_levels_of(t, (pid_t)pid, space, levels, 2);
		any = true;
	}
	return any;
}

static void write_device(struct run_nvml *n, struct run_trace *t, uint32_t index, uint64_t now_ns)
{
	const struct nvml_device *d = &n->answer.devices[index];
	struct written *w = &n->written[index];
	struct event_level age = {
	    TRACE_LEVEL_AGE_NS, now_ns > n->answer.asked_ns ? now_ns - n->answer.asked_ns : 0};
	struct event_level levels[] = {
	    {TRACE_LEVEL_DEV_FREE, d->free}, {TRACE_LEVEL_DEV_TOTAL, d->total}, age};
	struct users before = {w->processes, w->process_count};
	struct users now = {d->processes, d->process_count};
	bool changed;

	if (!d->total || d->process_count > NVML_PROCESSES)
		return;
	if (!w->defined)
		define(t, index, d);
	changed = write_processes(t, index + 1, age, before, now, true);
	changed |= write_processes(t, index + 1, age, now, before, false);
	if (!changed && w->defined && w->free == d->free && w->total == d->total &&
	    now_ns - w->time_ns < REST_NS)
		return;
	run_trace_levels_of(t, 0, index + 1, levels, 3);
	*w = (struct written){.free = d->free,
	    .total = d->total,
	    .time_ns = now_ns,
	    .process_count = d->process_count,
	    .defined = true};
	memcpy(w->processes, d->processes, d->process_count * sizeof(*d->processes));
}

/* The answer, if it has come. */
static void take(
    struct run_nvml *n, struct run_trace *t, struct run_budget *budget, uint64_t now_ns)
{
	size_t head = offsetof(struct nvml_answer, devices);
	ssize_t got = recv(n->fd, &n->answer, sizeof(n->answer), MSG_DONTWAIT);

	if (got < 0)
		return; /* EAGAIN: not yet; anything else shows when it is asked again */
	n->asked = false;
	if ((size_t)got < head || n->answer.count > NVML_DEVICES ||
	    (size_t)got < head + n->answer.count * sizeof(*n->answer.devices)) {
		close(n->fd);
		n->fd = -1;
		return;
	}
	for (uint32_t i = 0; i < n->answer.count; i++)
		write_device(n, t, i, now_ns);
	n->cost_ns = n->answer.cost_ns;
	run_budget_charge_other(budget, RUN_BUDGET_DEVICES, n->cost_ns);
}

void run_nvml_tick(
    struct run_nvml *n, struct run_trace *t, struct run_budget *budget, uint64_t now_ns)
{
	if (!n || n->fd < 0)
		return;
	if (n->asked)
		take(n, t, budget, now_ns);
	if (n->fd >= 0 && !n->asked && run_budget_affords(budget, RUN_BUDGET_DEVICES, n->cost_ns))
		n->asked = send(n->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

void run_nvml_stop(struct run_nvml *n)
{
	const struct timespec ms = {.tv_nsec = MS};

	if (!n)
		return;
	if (n->fd >= 0)
		close(n->fd);
	for (int left = LEAVE_MS; n->pid && left; left--) {
		if (waitpid(n->pid, NULL, WNOHANG))
			n->pid = 0;
		else
			nanosleep(&ms, NULL);
	}
	if (n->pid) {
		/* Not waited for: it may be stuck in the driver. */
		kill(n->pid, SIGKILL);
	}
	free(n);
}
