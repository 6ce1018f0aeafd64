/*
 * safe_point.c - see safe_point.h.
 */
#include "attach/safe_point.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "attach/frames.h"
#include "util/clock_ns.h"

#define STOP_MS 1000u /* until a thread stops that was asked to; one in state D takes its time */
#define ENTRY_MS 100u /* how long a thread may take to enter malloc before another one is tried */
#define FRAMES_MAX 512u
#define HURRIED_NICE (-20) /* before all threads of the program */
#define ASLEEP_MAX 32u /* sleepers looked at in a round: each is woken for it */

struct search {
	const struct target *target;
	const struct landmarks *marks;
	struct frames *frames; /* NULL: no stack can be followed */
	uint64_t end_ns;
	int refused; /* errno of the last thread that could not be traced */
	unsigned tried, unsafe;
};

static bool within(const struct region *regions, unsigned count, uint64_t address)
{
	for (unsigned i = 0; i < count; i++)
		if (address >= regions[i].lo && address < regions[i].hi)
			return true;
	return false;
}

/* Lets a thread go on as if it had not been stopped. */
static void let_go(struct safe_point *p, bool pending)
{
	if (p->tracee.stopped && !p->tracee.signal &&
	    !machine_get_registers(p->tracee.tid, &p->saved)) {
		machine_wait_again(&p->saved, pending);
		machine_set_registers(p->tracee.tid, &p->saved);
	}
	tracee_detach(&p->tracee);
}

/* Is the thread one that the C library made? It keeps the thread's id among what it knows of it. */
static bool is_known(const struct search *s, const struct machine *m, pid_t own)
{
	uint32_t words[1024];
	uint64_t address;
	size_t bytes;

	machine_thread_block(m, &address, &bytes);
	bytes = bytes < sizeof(words) ? bytes : sizeof(words);
	if (!address || !target_peek(s->target->pid, address, words, bytes))
		return false;
	for (size_t i = 0; i < bytes / sizeof(*words); i++)
		if (words[i] == (uint32_t)own)
			return true;
	return false;
}

static bool is_asleep_safely(const struct search *s, const struct safe_point *p, pid_t own)
{
	const struct landmarks *marks = s->marks;
	uint64_t pcs[FRAMES_MAX];
	bool lock;
	size_t n;

	if (!machine_waits(&p->saved, &lock) || (lock && marks->foreign) ||
	    !is_known(s, &p->saved, own))
		return false;
	n = frames_of(s->frames, p->tracee.tid, pcs, FRAMES_MAX);
	for (size_t i = 0; i < n; i++)
		if (within(marks->loader, marks->loaders, pcs[i]) ||
		    within(marks->busy, marks->busies, pcs[i]))
			return false;
	return n > 0;
}

/* 0: stopped at a safe point; 1: not this thread; -EBUSY: the process has been stopped. */
static int try_asleep(struct search *s, const struct target_thread *thread, struct safe_point *out)
{
	int rc = tracee_seize(thread->tid, &out->tracee);

	if (rc) {
		s->refused = -rc;
		return 1;
	}
	s->tried++;
	rc = tracee_stop(&out->tracee, STOP_MS);
	out->stopped_ns = clock_ns(CLOCK_MONOTONIC);
	if (!rc && out->tracee.job)
		rc = -EBUSY;
	else if (!rc)
		rc = machine_save(out->tracee.tid, &out->saved);
	if (!rc && is_asleep_safely(s, out, thread->own)) {
		machine_wait_again(&out->saved, thread->pending);
		out->how = SAFE_POINT_ASLEEP;
		return 0;
	}
	s->unsafe++;
	let_go(out, thread->pending);
	return rc == -EBUSY ? rc : 1;
}

/* Is the thread at a watched entry, called by code that holds none of the locks? */
static bool is_entry(const struct search *s, const struct machine *m)
{
	const struct landmarks *marks = s->marks;
	uint64_t caller = machine_return(s->target->pid, m);

	if (!caller || within(marks->loader, marks->loaders, caller) ||
	    within(marks->busy, marks->busies, caller))
		return false;
	return !within(&marks->libc_code, 1, caller) ||
	       within(marks->copies, marks->copy_count, caller);
}

/* Steps over a watched entry. 0; negative errno. */
static int pass(const struct search *s, struct safe_point *p)
{
	int rc;

	if (!machine_watch_steps())
		return 0;
	rc = machine_watch(p->tracee.tid, NULL, 0);
	if (!rc)
		rc = tracee_step(&p->tracee);
	return rc ? rc : machine_watch(p->tracee.tid, s->marks->entries, s->marks->entry_count);
}

/* Waits at the watched entries. 0: stopped at one; 1: not in time; negative errno. */
static int wait_for_entry(struct search *s, struct safe_point *p)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + ENTRY_MS * 1000000ull, now;
	int rc = 0;

	while (!rc && (now = clock_ns(CLOCK_MONOTONIC)) < end) {
		rc = tracee_continue(&p->tracee);
		if (!rc)
			rc = tracee_wait(&p->tracee, (unsigned)((end - now) / 1000000u) + 1);
		if (rc == -ETIMEDOUT)
			return 1;
		if (rc || p->tracee.job)
			break;
		p->stopped_ns = clock_ns(CLOCK_MONOTONIC);
		if (!p->tracee.trap)
			continue; /* by a signal of its own, which it gets */
		rc = machine_get_registers(p->tracee.tid, &p->saved);
		if (!rc && is_entry(s, &p->saved))
			return machine_save(p->tracee.tid, &p->saved);
		if (!rc)
			rc = pass(s, p);
	}
	return rc ? rc : p->tracee.job ? -EBUSY : 1;
}

/* As try_asleep(). The watch is off again in any case. */
static int try_entry(struct search *s, const struct target_thread *thread, struct safe_point *out)
{
	int rc = tracee_seize(thread->tid, &out->tracee);

	if (rc) {
		s->refused = -rc;
		return 1;
	}
	s->tried++;
	rc = tracee_stop(&out->tracee, STOP_MS);
	if (!rc && out->tracee.job)
		rc = -EBUSY;
	if (!rc) {
		/* It has not been at the entry: only now its wait must be begun again. */
		if (!machine_get_registers(out->tracee.tid, &out->saved)) {
			machine_wait_again(&out->saved, thread->pending);
			machine_set_registers(out->tracee.tid, &out->saved);
		}
		out->watched = out->tracee.tid;
		rc = machine_watch(out->tracee.tid, s->marks->entries, s->marks->entry_count);
		if (!rc)
			rc = wait_for_entry(s, out);
		if (!out->tracee.stopped && tracee_stop(&out->tracee, STOP_MS))
			return rc == -ESRCH ? 1 : rc; /* it has ended */
		machine_watch(out->tracee.tid, NULL, 0);
		out->watched = 0;
	}
	if (!rc) {
		out->how = SAFE_POINT_ENTRY;
		return 0;
	}
	let_go(out, thread->pending);
	return rc == -EBUSY ? rc : 1;
}

/* Both kinds, thread by thread. Sleepers first: nobody waits for them. */
static int try_all(struct search *s, const target_threads *threads, struct safe_point *out)
{
	unsigned asleep = 0;
	int rc = 1;

	for (size_t i = threads->count; s->frames && rc == 1 && i-- && asleep < ASLEEP_MAX;)
		if (threads->items[i].state == 'S') {
			rc = try_asleep(s, &threads->items[i], out);
			asleep++;
		}
	for (size_t i = 0; rc == 1 && i < threads->count; i++)
		if (clock_ns(CLOCK_MONOTONIC) < s->end_ns && strchr("RSD", threads->items[i].state))
			rc = try_entry(s, &threads->items[i], out);
	return rc;
}

int safe_point_reach(const struct target *target, const struct landmarks *marks,
    unsigned timeout_ms, struct safe_point *out, struct err *err)
{
	struct search s = {.target = target,
	    .marks = marks,
	    .end_ns = clock_ns(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * 1000000u};
	target_threads threads = {0};
	int rc;

	s.frames = frames_open(target);
	do {
		rc = target_read_threads(target->pid, &threads);
		if (!rc)
			rc = try_all(&s, &threads, out);
	} while (rc == 1 && !(s.refused && !s.tried) && clock_ns(CLOCK_MONOTONIC) < s.end_ns);
	vec_free(&threads);
	frames_close(s.frames);
	if (!rc)
		return 0;
	if (rc == -ESRCH)
		return err_set(
		    err, rc, "process %d (%s) has ended", (int)target->pid, target->name);
	if (rc == -EBUSY)
		return err_set(err, rc,
		    "process %d (%s) was stopped in the meantime: continue it "
		    "with kill -CONT %d, and try again",
		    (int)target->pid, target->name, (int)target->pid);
	if (rc == 1 && s.refused && !s.tried)
		return err_set(err, -s.refused, "process %d (%s) may not be traced: %s",
		    (int)target->pid, target->name, strerror(s.refused));
	if (rc == 1)
		return err_set(err, -EAGAIN,
		    "no thread of process %d (%s) came to a point where it can be asked safely: "
		    "none of them called malloc, and none sleeps with a stack that can be "
		    "followed; "
		    "the process is as before: try again while it works",
		    (int)target->pid, target->name);
	return err_set(
	    err, rc, "process %d (%s): %s", (int)target->pid, target->name, strerror(-rc));
}

void safe_point_hurry(struct safe_point *point)
{
	pid_t tid = point->tracee.tid;

	errno = 0;
	point->nice = getpriority(PRIO_PROCESS, (id_t)tid);
	if (errno || point->nice <= HURRIED_NICE)
		return;
	point->hurried = tid; /* first, as we may be killed in between */
	if (setpriority(PRIO_PROCESS, (id_t)tid, HURRIED_NICE))
		point->hurried = 0;
}

void safe_point_unhurry(struct safe_point *point)
{
	if (point->hurried)
		setpriority(PRIO_PROCESS, (id_t)point->hurried, point->nice);
	point->hurried = 0;
}

void safe_point_unwatch(struct safe_point *point)
{
	safe_point_unhurry(point);
	if (!point->watched || tracee_seize(point->watched, &point->tracee))
		return;
	if (!tracee_stop(&point->tracee, STOP_MS))
		machine_watch(point->watched, NULL, 0);
	let_go(point, false);
}
