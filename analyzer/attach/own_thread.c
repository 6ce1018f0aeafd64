/*
 * own_thread.c - see own_thread.h. The new thread is one of the C library, so that it may open
 * libraries and allocate, and begins in a sleep, where it is found. If nobody comes for it, the
 * sleep ends, and so does the thread.
 */
#include "attach/own_thread.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "util/clock_ns.h"

#define CREATE_MS 10000u
#define FIND_MS 10000u /* on a busy machine a new thread waits for a core */
#define SLEEP_US 20000000u /* longer than it is looked for */
#define STOP_MS 1000u
#define END_MS 1000u /* until it has ended, so that nothing of it is seen afterwards */
/* Of the C library's account of a thread; the thread's id is in the first 0x300 bytes. */
#define BLOCK_BYTES 1024u
#define LOOK_AGAIN_NS 500000

/* Is it the thread whose account the C library keeps at `id`? */
static bool is_it(pid_t pid, uint64_t id, pid_t own)
{
	uint32_t words[BLOCK_BYTES / sizeof(uint32_t)];

	if (!target_peek(pid, id, words, sizeof(words)))
		return false;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (words[i] == (uint32_t)own)
			return true;
	return false;
}

/* Stops the thread if it has come to its sleep. 0; 1: it has not. */
static int take(pid_t tid, struct safe_point *out)
{
	struct safe_point point = {.how = SAFE_POINT_ASLEEP};
	int rc = tracee_seize(tid, &point.tracee);

	if (rc)
		return 1;
	rc = tracee_stop(&point.tracee, STOP_MS);
	point.stopped_ns = clock_ns(CLOCK_MONOTONIC);
	if (!rc && !point.tracee.job)
		rc = machine_save(tid, &point.saved);
	if (rc || point.tracee.job || !machine_sleeps(&point.saved)) {
		tracee_detach(&point.tracee);
		return 1;
	}
	*out = point;
	return 0;
}

/* Waits for the new thread, and stops it. 0; -ETIMEDOUT; -ESRCH. */
static int find(pid_t pid, uint64_t id, struct safe_point *out)
{
	const struct timespec pause = {0, LOOK_AGAIN_NS};
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + FIND_MS * 1000000ull;
	target_threads threads = {0};
	int rc = 1;

	while (rc == 1 && clock_ns(CLOCK_MONOTONIC) < end) {
		if (target_read_threads(pid, &threads))
			rc = -ESRCH;
		for (size_t i = 0; rc == 1 && i < threads.count; i++)
			if (threads.items[i].state == 'S' && is_it(pid, id, threads.items[i].own))
				rc = take(threads.items[i].tid, out);
		if (rc == 1)
			nanosleep(&pause, NULL);
	}
	vec_free(&threads);
	return rc == 1 ? -ETIMEDOUT : rc;
}

static bool has_others(pid_t pid)
{
	target_threads threads = {0};
	bool others = !target_read_threads(pid, &threads) && threads.count > 1;

	vec_free(&threads);
	return others;
}

/* A new thread takes 8 MiB of addresses for its stack, and 64 MiB or more for an arena of malloc.
 */
static bool has_room(pid_t pid)
{
	static const int limits[] = {RLIMIT_AS, RLIMIT_DATA};
	struct rlimit limit;

	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
		if (prlimit(pid, limits[i], NULL, &limit) || limit.rlim_cur != RLIM_INFINITY)
			return false;
	return true;
}

int own_thread_begin(
    struct remote *r, const struct landmarks *marks, struct own_thread *out, struct err *err)
{
	uint64_t id = 0, text;
	int64_t result = 0;
	int rc;

	if (!marks->create || !marks->detach || !marks->sleep || r->target->seccomp ||
	    !has_others(r->target->pid) || !has_room(r->target->pid))
		return 1;
	text = remote_text(r, &id, sizeof(id));
	if (!text)
		return 1;
	rc = remote_call(r, marks->create,
	    (const uint64_t[MACHINE_ARGUMENTS]){text, 0, marks->sleep, SLEEP_US}, CREATE_MS,
	    &result, err);
	if (!rc && result)
		return 1; /* of its limit of threads, or out of memory */
	if (!rc && !target_peek(r->target->pid, text, &id, sizeof(id)))
		rc = err_set(err, -EFAULT, "process %d (%s): its memory cannot be read",
		    (int)r->target->pid, r->target->name);
	if (rc) {
		remote_end(r);
		return rc;
	}
	*out = (struct own_thread){.remote = r, .pause_ns = remote_let_go(r)};
	rc = find(r->target->pid, id, r->point);
	if (rc)
		return err_set(err, rc,
		    "process %d (%s) made a thread for this, which did not come to run: try again "
		    "when the machine is less busy",
		    (int)r->target->pid, r->target->name);
	rc = remote_take_over(r);
	if (!rc)
		rc = remote_call(r, marks->detach, (const uint64_t[MACHINE_ARGUMENTS]){id},
		    CREATE_MS, &result, err);
	else
		err_set(err, rc, "process %d (%s): its new thread cannot be used: %s",
		    (int)r->target->pid, r->target->name, strerror(-rc));
	if (rc)
		remote_end(r);
	return rc;
}

void own_thread_end(struct own_thread *own)
{
	const struct timespec pause = {0, LOOK_AGAIN_NS};
	struct remote *r = own->remote;
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + END_MS * 1000000ull;
	pid_t tid = r->point->tracee.tid;
	struct target_thread thread;

	machine_wake(&r->point->saved);
	remote_end(r);
	while (!r->lost && !target_read_thread(r->target->pid, tid, &thread) &&
	       clock_ns(CLOCK_MONOTONIC) < end)
		nanosleep(&pause, NULL);
}
