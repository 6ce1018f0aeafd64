/*
 * space_failure.c - requests that a device's driver or PyTorch refused. Attempts at one request are
 * gathered, at all levels; if one succeeds in the end, there was no out-of-memory.
 */
#include <string.h>

#include "model/heap/host_failure.h"
#include "model/heap/replaced_period.h"
#include "model/space/space_parts.h"
#include "util/num.h"
#include "util/tuned.h"

TUNED(uint64_t, ECHO_NS, 1000000000ull,
    "an error that is raised, caught and logged takes less than a second");
TUNED(uint64_t, RETRY_NS, 50000000ull, "an allocator flushes its caches and retries in less");

static struct device_failure *latest(struct spaces *s)
{
	return s->failure_count ? &s->failures[s->failure_count - 1] : NULL;
}

static uint64_t level_of(const struct space *sp, uint32_t key, bool *known)
{
	uint64_t value = 0;

	*known = sp && levels_get(&sp->model->measured.levels, key, &value);
	return value;
}

/* Take the moment of the last attempt at the innermost level: memory that was released between two
 * attempts is gone by then. */
static void take_moment(
    struct spaces *s, struct device_failure *f, const struct space *sp, const struct event *e)
{
	const struct space *cuda = spaces_of(s, SPACE_CUDA, sp->device);
	bool both;

	f->time_ns = f->last_ns = e->time_ns;
	f->event = s->now_event;
	f->live_bytes = sp->model->blocks.bytes;
	f->acquired = sp->model->total.count;
	f->acquired_bytes = sp->model->total.bytes;
	f->reserved = level_of(sp, TRACE_LEVEL_RESERVED, &f->reserved_known);
	f->allocated = level_of(sp, TRACE_LEVEL_ALLOCATED, &both);
	f->reserved_known = f->reserved_known && both;
	if (sp->kind != SPACE_CUDA && sp->kind != SPACE_POOL && sp->kind != SPACE_GRAPH &&
	    sp->kind != SPACE_TORCH)
		return;
	f->free = level_of(cuda, TRACE_LEVEL_DEV_FREE, &f->free_known);
	f->total = level_of(cuda, TRACE_LEVEL_DEV_TOTAL, &both);
	f->free_known = f->free_known && both;
}

static struct device_failure *new_entry(struct spaces *s)
{
	struct device_failure *f;

	if (s->failure_count == DEVICE_FAILURES)
		memmove(
		    &s->failures[0], &s->failures[1], (DEVICE_FAILURES - 1) * sizeof(*s->failures));
	else
		s->failure_count++;
	s->failure_total++;
	f = &s->failures[s->failure_count - 1];
	memset(f, 0, sizeof(*f));
	return f;
}

static bool same_attempts(const struct device_failure *f, const struct event *e)
{
	if (f->thread != e->thread || f->recovered)
		return false;
	if (e->u.failed.retry || f->retry)
		return e->u.failed.retry == f->retry;
	return e->time_ns - f->last_ns <= RETRY_NS;
}

void space_on_failed(struct spaces *s, struct space *sp, const struct event *e)
{
	struct device_failure *f = latest(s);
	bool framework = e->u.failed.why == TRACE_FAIL_FRAMEWORK;

	if (!framework && e->u.failed.result != EVENT_DEVICE_NO_MEMORY) {
		s->other_results++;
		return;
	}
	if (f && same_attempts(f, e)) {
		f->count++;
		if (framework && s->list[f->space]->kind != SPACE_TORCH) {
			/* The level below was asked first, for this request. */
			f->below = f->space;
			f->segment = f->size;
		} else if (framework != (s->list[f->space]->kind == SPACE_TORCH)) {
			/* A driver's refusal after PyTorch's belongs to a new request. */
			f->last_ns = e->time_ns;
			return;
		}
		f->space = sp->index;
	} else if (f && !f->recovered && e->time_ns - f->last_ns <= ECHO_NS &&
		   s->list[f->space]->device == sp->device && f->thread == e->thread &&
		   s->list[f->space]->kind == sp->kind) {
		f->count++;
		f->last_ns = e->time_ns;
		if (host_failure_is_half(e->size, f->least))
			f->least = e->size;
		return;
	} else {
		f = new_entry(s);
		f->space = sp->index;
		f->below = SPACE_NONE;
		f->thread = e->thread;
		f->count = 1;
	}
	f->size = f->least = e->size;
	f->stack = e->stack ? e->stack : f->stack;
	f->retry = e->u.failed.retry;
	f->flags = e->u.failed.flags;
	f->result = e->u.failed.result;
	f->api = e->u.failed.api;
	f->label = e->u.failed.label;
	take_moment(s, f, sp, e);
}

static void recover(struct device_failure *f)
{
	if (f->recovered)
		return;
	f->recovered = true;
	/* A checkpoint replaced the events from before the refusal: only the refusal is known. */
	if (f->since_replaced || f->summed_bytes)
		f->retried = f->settled = true;
}

static void settle(struct spaces *s, struct device_failure *f, bool retried)
{
	f->settled = true;
	f->retried = retried;
	s->retried_total += retried;
}

/* PyTorch reports refusals and grants from different functions. */
static bool same_line(const struct spaces *s, uint32_t one, uint32_t other)
{
	const struct symbol *a, *b;

	if (one == other)
		return one != 0;
	a = feed_python_frame(&s->feed, one);
	b = feed_python_frame(&s->feed, other);
	return a && b && symbol_same_line(a, b);
}

/* As for the host: settled only if it happens before as much else was done. */
static void note_grant(struct spaces *s, struct device_failure *f, const struct event *e)
{
	const struct model *m = s->list[f->space]->model;
	uint64_t since = num_less(m->total.bytes, num_sum(f->acquired_bytes, e->size));

	if (num_sum(since, f->summed_bytes) > f->size)
		f->settled = true;
	else if (e->thread == f->thread && same_line(s, e->stack, f->stack) &&
		 (e->size >= f->size || host_failure_is_half(e->size, f->least)))
		settle(s, f, true);
}

/* True if as many bytes as lived then were acquired since: the program does the same again. */
static bool went_on(const struct model *m, const struct device_failure *f)
{
	return num_sum(m->total.bytes - f->acquired_bytes, f->summed_bytes) >
	       num_sum(f->live_bytes, f->size);
}

/* Return the bytes that lived then. Before a checkpoint fewer blocks are known than lived. */
static uint64_t lived(const struct device_failure *f)
{
	return f->reserved_known && f->allocated > f->live_bytes ? f->allocated : f->live_bytes;
}

/* A refusal before a checkpoint is known in part: compare later events with the checkpoint. */
static void count_from_there(struct device_failure *f, const struct model *m)
{
	if (f->since_replaced)
		return;
	f->since_replaced = true;
	f->acquired = m->total.count;
	f->acquired_bytes = m->total.bytes;
	f->live_bytes = lived(f);
	f->live_bytes = num_most(f->live_bytes, m->blocks.bytes);
}

void space_failure_freed_stats(struct spaces *s, const struct space *sp, uint64_t bytes)
{
	struct device_failure *f = latest(s);

	if (!f || f->recovered || f->space != sp->index || f->time_ns > s->replaced_until_ns)
		return;
	f->summed_bytes = num_sum(f->summed_bytes, bytes);
	if (f->summed_bytes > num_sum(lived(f), f->size))
		recover(f);
}

void space_note_failure(struct spaces *s, const struct space *sp, const struct event *e)
{
	struct device_failure *f = latest(s);
	uint64_t live, past = replaced_until_ns(&s->feed);
	const struct model *m;

	if (!f || (f->recovered && f->settled))
		return;
	if (!f->settled && e->kind == EV_SPACE_ALLOC && f->retry && e->u.space.retry == f->retry &&
	    e->thread == f->thread && s->list[f->space]->kind != SPACE_TORCH) {
		settle(s, f, true);
		recover(f);
		return;
	}
	m = s->list[f->space]->model;
	if (f->time_ns <= past) {
		if (e->time_ns <= past)
			return;
		count_from_there(f, m);
	}
	live = m->blocks.bytes;
	if (e->kind == EV_SPACE_ALLOC && sp && sp->index == f->space) {
		bool at_once = m->total.count - f->acquired <= HOST_FAILURE_RETRY;

		if (!f->settled)
			note_grant(s, f, e);
		/* A smaller request at once takes what it can get, unless it gave up before. */
		if (e->stack && e->stack == f->stack && !f->settled && at_once && !f->dipped)
			settle(s, f, true);
		if (f->retried ||
		    (e->stack && e->stack == f->stack && (e->size >= f->size || at_once)))
			recover(f);
	}
	if (f->recovered)
		return;
	/* The program went on: it released as much as it had asked for, and then held as much
	 * again; or it held more than it would have held with the request. */
	if (live + f->size <= f->live_bytes || (!live && f->live_bytes))
		f->dipped = true;
	if ((f->dipped && live >= f->live_bytes) || live > f->live_bytes + f->size || went_on(m, f))
		recover(f);
}

void spaces_finish(struct spaces *s, bool badly)
{
	struct device_failure *f = s ? latest(s) : NULL;
	const struct space *sp;
	uint64_t before;

	if (!f || !f->recovered || !badly)
		return;
	/* The granted request may have been another's, on the way out: the program had to live on,
	 * and do as much as before. */
	sp = s->list[f->space];
	before = num_sum(f->acquired_bytes, sp->model->total.freed_stats.bytes);
	before = num_less(before, f->summed_bytes); /* later than the replaced period */
	if (num_sum(sp->model->total.bytes - f->acquired_bytes, f->summed_bytes) <= before) {
		s->retried_total -= f->retried;
		f->recovered = f->retried = false;
	}
}

/* When threads are refused one after the other, the first refusal was when all were at work; the
 * others echo it, with some threads gone. */
static const struct device_failure *first_of(
    const struct spaces *s, const struct device_failure *last)
{
	const struct device_failure *first = last, *f = last;

	while (f-- > s->failures && first->time_ns - f->time_ns <= ECHO_NS)
		if (!f->retried && f->space == first->space && f->thread != first->thread)
			first = f;
	return first;
}

const struct device_failure *spaces_failure(const struct spaces *s)
{
	const struct device_failure *last;

	if (!s || !s->failure_count)
		return NULL;
	last = &s->failures[s->failure_count - 1];
	return last->retried ? NULL : first_of(s, last);
}
