/*
 * merge.c - merges all threads' events into one order: by time, and, if times contradict each
 * other, so that an address is live only once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/integrity/repair.h"
#include "trace/reader.h"
#include "whyoom/trace.h"

#define AHEAD 8u /* events between the second prefetch and the use */

static bool before(const struct merge_head *a, const struct merge_head *b)
{
	if (a->ticks != b->ticks)
		return a->ticks < b->ticks;
	if (a->order != b->order)
		return a->order < b->order;
	return a->stream < b->stream;
}

static void sift_down(struct trace *t, size_t at)
{
	struct merge_head *heap = t->heap, moved = heap[at];
	size_t child;

	while ((child = 2 * at + 1) < t->heap_count) {
		if (child + 1 < t->heap_count && before(&heap[child + 1], &heap[child]))
			child++;
		if (!before(&heap[child], &moved))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = moved;
}

/* Restore the heap after its top changed. Mostly it stays: a thread's events come in runs. */
static inline void settle_top(struct trace *t)
{
	const struct merge_head *heap = t->heap;

	if (t->heap_count > 1 &&
	    (before(&heap[1], &heap[0]) || (t->heap_count > 2 && before(&heap[2], &heap[0]))))
		sift_down(t, 0);
}

static bool is_release(const struct rec *rec)
{
	return rec->kind == TRACE_FREE || rec->kind == TRACE_TASK_END ||
	       (rec->kind == REC_EXTENDED && (rec->extended->kind == TRACE_SPACE_FREE ||
						 rec->extended->kind == TRACE_SPACE_UNMAP));
}

/* Order a stream by its next event; before that is decoded, by its earliest possible time. */
static inline void head_of(const struct trace *t, const struct stream *s, struct merge_head *head)
{
	if (s->head < s->tail) {
		const struct rec *rec = &s->queue[s->head];
		head->ticks = rec->ticks;
		head->order = !is_release(rec);
		return;
	}
	head->order = 0;
	head->ticks = s->last_ticks;
	if (!s->in_chunk && s->next < s->count &&
	    t->chunks.items[s->first + s->next].ticks > head->ticks &&
	    !t->chunks.items[s->first + s->next].side_count)
		head->ticks = t->chunks.items[s->first + s->next].ticks;
}

static void start(struct trace *t)
{
	t->started = true;
	t->heap_count = 0;
	for (size_t i = 0; i < t->stream_count; i++) {
		struct merge_head *head = &t->heap[t->heap_count++];

		stream_rewind(&t->streams[i], &t->context);
		*head = (struct merge_head){.stream = (uint32_t)i};
		head_of(t, &t->streams[i], head);
	}
	for (size_t i = t->heap_count / 2; i-- > 0;)
		sift_down(t, i);
	t->look_credit = LOOK_FIRST;
}

void merge_resume(struct trace *t)
{
	t->heap_count = 0;
	for (size_t i = 0; i < t->stream_count; i++) {
		struct stream *s = &t->streams[i];
		struct merge_head head = {.stream = (uint32_t)i};

		if (s->ended && s->head == s->tail)
			continue;
		head_of(t, s, &head);
		t->heap[t->heap_count++] = head;
	}
	for (size_t i = t->heap_count / 2; i-- > 0;)
		sift_down(t, i);
}

static inline __attribute__((always_inline)) void put_event(
    struct trace *t, struct event *out, enum event_kind kind, const struct rec *rec, uint64_t ticks)
{
	out->kind = kind;
	out->api = rec->api;
	out->flags = 0;
	out->thread = t->threads.items[rec->thread].serial;
	out->stack = rec->stack;
	out->space = TRACE_SPACE_HOST;
	out->task = t->states.items[rec->thread].task;
	out->time_ns = clock_ns(&t->clock, ticks);
	out->address = rec->address;
	out->block = NULL;
	out->old = NULL;
	out->levels = NULL;
	out->level_count = 0;
}

/* Defer the event at the top, which contradicts the live blocks: it releases a block that is not
 * live, or acquires one that is. Another thread's event at the same tick may have come first. True:
 * the top changed. False: no other event is left at this tick. */
static bool defer(struct trace *t, struct stream *s)
{
	struct merge_head *top = &t->heap[0];
	uint64_t now = t->counts.events + 1;
	bool wait = false;

	if ((t->heap_count < 2 || t->heap[1].ticks != top->ticks) &&
	    (t->heap_count < 3 || t->heap[2].ticks != top->ticks))
		return false;
	/* Look for an event that was not deferred since the last one. */
	for (size_t i = 1; i < t->heap_count && !wait; i++)
		wait =
		    t->heap[i].ticks == top->ticks && t->streams[t->heap[i].stream].deferred != now;
	if (!wait)
		return false;
	s->deferred = now;
	top->order = top->order < 2 ? 2 : top->order + 1;
	sift_down(t, 0);
	return true;
}

/* `b` is the released block, already out of the table; NULL: it was not live. */
static void apply_free(
    struct trace *t, const struct rec *rec, struct block *b, uint64_t ticks, struct event *out)
{
	struct thread_state *state = &t->states.items[rec->thread];
	struct block *kept;

	put_event(t, out, EV_FREE, rec, ticks);
	state->release_ticks[state->release_at % RELEASES_KEPT] = ticks;
	kept = &state->releases[state->release_at++ % RELEASES_KEPT];
	if (state->release_count < RELEASES_KEPT)
		state->release_count++;
	if (b) {
		*kept = *b;
		t->released = b;
		out->block = b;
		out->size = b->size;
	} else {
		*kept = (struct block){.address = rec->address};
		t->counts.unmatched_frees++;
		out->flags = EVENT_REPAIRED;
		out->size = 0;
	}
	state->reallocating = rec->realloc;
	if (rec->realloc) {
		state->moving = *kept;
		out->flags |= EVENT_REALLOC;
	}
	t->threads.items[rec->thread].frees++;
}

/* Apply an acquisition at the address of a live block. 1: *out is its event; 2: *out is another
 * event and the record stays; 3: deferred; negative errno. */
static __attribute__((noinline)) int apply_alloc_over(
    struct trace *t, uint32_t own, const struct rec *rec, struct event *out, struct err *err)
{
	struct rec release;
	int r;

	if (defer(t, &t->streams[own]))
		return 3;
	r = repair_find(t, rec, false, TRACE_FREE, t->late_ticks, &release, err);
	if (r < 0)
		return r;
	if (r) {
		t->counts.repairs++;
		apply_free(t, &release, live_take(&t->live, release.address), rec->ticks, out);
		t->counts.events++;
		return 2;
	}
	/* The release was not recorded: release the old block here. */
	t->counts.double_allocs++;
	t->over_live = true;
	put_event(t, out, EV_FREE, rec, rec->ticks);
	t->released = live_take(&t->live, rec->address);
	out->flags = EVENT_REPAIRED;
	out->block = t->released;
	out->size = t->released->size;
	out->stack = 0;
	return 2;
}

/* Apply an acquisition; returns as apply_alloc_over() does. */
static inline __attribute__((always_inline)) int apply_alloc(
    struct trace *t, uint32_t own, const struct rec *rec, struct event *out, struct err *err)
{
	bool lived;
	struct block *b = live_find_or_add(&t->live, rec->address, rec->size, &lived);
	struct thread_state *state;

	if (!b)
		return err_set(err, -ENOMEM, "%s: out of memory with %zu live blocks",
		    t->source.path, t->live.count);
	if (__builtin_expect(lived, 0))
		return apply_alloc_over(t, own, rec, out, err);
	put_event(t, out, EV_ALLOC, rec, rec->ticks);
	b->birth_ns = out->time_ns;
	b->serial = ++t->serial;
	b->stack = rec->stack;
	b->thread = out->thread;
	b->mean = rec->mean;
	b->task = out->task;
	out->size = rec->size;
	out->block = b;
	if (t->over_live) {
		out->flags |= EVENT_REPAIRED;
		t->over_live = false;
	}
	state = &t->states.items[rec->thread];
	if (rec->api == TRACE_API_REALLOC && state->reallocating) {
		out->flags |= EVENT_REALLOC;
		if (state->moving.serial) {
			t->old = state->moving;
			out->old = &t->old;
		}
	}
	state->reallocating = false;
	t->threads.items[rec->thread].allocs++;
	return 1;
}

/* Apply a release of a block that is not live; returns as apply_alloc() does. The releasing thread
 * may have read its clock before the acquiring thread did. If it also released the previous block
 * at the address, its own acquisition is missing. */
static __attribute__((noinline)) int apply_early_free(
    struct trace *t, uint32_t own, const struct rec *rec, struct event *out, struct err *err)
{
	struct rec release = *rec, acquired;
	int r;

	if (defer(t, &t->streams[own]))
		return 3;
	r = repair_find(
	    t, rec, repair_just_released(t, rec), TRACE_ALLOC, t->early_ticks, &acquired, err);
	if (r < 0)
		return r;
	if (!r) {
		apply_free(t, &release, NULL, release.ticks, out);
		return 1;
	}
	acquired.ticks = release.ticks;
	r = apply_alloc(t, own, &acquired, out, err);
	if (r < 0)
		return r;
	t->counts.repairs++;
	t->counts.events++;
	return 2;
}

/* 1: *out is an event; 0: the record has no effect; negative errno. */
static int apply_unfree(struct trace *t, const struct rec *rec, struct event *out, struct err *err)
{
	struct thread_state *state = &t->states.items[rec->thread];
	struct block *kept = NULL, *b;
	bool lived;

	for (unsigned n = 1; n <= state->release_count && !kept; n++) {
		kept = &state->releases[(uint8_t)(state->release_at - n) % RELEASES_KEPT];
		if (kept->address != rec->address)
			kept = NULL;
	}
	if (state->reallocating && state->moving.address == rec->address)
		state->reallocating = false;
	if (!kept)
		return 0;
	if (t->threads.items[rec->thread].frees)
		t->threads.items[rec->thread].frees--;
	if (!kept->serial) {
		t->counts.unmatched_frees--;
		kept->address = ~rec->address;
		return 0;
	}
	b = live_find_or_add(&t->live, kept->address, kept->size, &lived);
	if (!b)
		return err_set(err, -ENOMEM, "%s: out of memory with %zu live blocks",
		    t->source.path, t->live.count);
	if (lived) {
		t->counts.repairs++; /* the address is live again */
		return 0;
	}
	b->birth_ns = kept->birth_ns;
	b->serial = kept->serial;
	b->stack = kept->stack;
	b->thread = kept->thread;
	b->task = kept->task;
	b->mean = kept->mean;
	kept->address = ~rec->address; /* used up */
	put_event(t, out, EV_UNFREE, rec, rec->ticks);
	out->stack = b->stack;
	out->size = b->size;
	out->block = b;
	return 1;
}

/* Switch the thread to another task. A key not seen since its TASK_END is a new task's. */
static int apply_task(struct trace *t, const struct rec *rec, struct err *err)
{
	uint64_t *serial;

	t->states.items[rec->thread].task = 0;
	if (!rec->address)
		return 0;
	serial = map_find(&t->tasks, rec->address);
	if (!serial) {
		if (t->tasks.count >= TASKS_MAX)
			return 0;
		serial = map_put(&t->tasks, rec->address);
		if (!serial)
			return err_set(err, -ENOMEM, "%s: out of memory", t->source.path);
		*serial = ++t->counts.tasks;
	}
	t->states.items[rec->thread].task = (uint32_t)*serial;
	return 0;
}

/* 1: *out is an event; 0: the task is unknown. */
static int apply_task_end(struct trace *t, const struct rec *rec, struct event *out)
{
	const uint64_t *serial = map_find(&t->tasks, rec->address);

	if (!serial)
		return 0;
	put_event(t, out, EV_TASK_END, rec, rec->ticks);
	out->address = out->size = 0;
	out->task = (uint32_t)*serial;
	map_remove(&t->tasks, rec->address);
	return 1;
}

/* 1, or 0: this kind is no event. */
static int apply_extended(struct trace *t, const struct rec *rec, struct event *out)
{
	put_event(t, out, EV_NOTICE, rec, rec->ticks);
	t->extended = rec->extended; /* freed at the next event */
	out->address = out->size = 0;
	return extended_to_event(t, rec->extended, out);
}

/* False: the record only says how to read others. */
static bool is_counted(const struct rec *rec)
{
	switch (rec->kind) {
	case REC_APPLIED:
	case REC_UNKNOWN:
	case TRACE_TASK:
	case TRACE_TASK_END:
		return false;
	}
	return true;
}

static void settle(struct trace *t)
{
	if (t->released) {
		live_recycle(&t->live, t->released);
		t->released = NULL;
	}
	if (t->extended) {
		free(t->extended);
		t->extended = NULL;
	}
}

/* End the pass. A running program may have replaced listed chunks by a checkpoint; then the events
 * that were read are not its own. */
static int finish(struct trace *t, struct err *err)
{
	uint64_t last = clock_ns(&t->clock, t->last_ticks);
	uint32_t newest;
	int r = trace_newest_checkpoint(t, &newest, err);

	if (!r && newest != t->newest)
		r = err_set(err, -EAGAIN,
		    "%s: the program replaced older events by a checkpoint while they were read: "
		    "read it once more",
		    t->source.path);
	if (r)
		return r;

	if (t->counts.events && last > t->facts.last_ns)
		t->facts.last_ns = last;
	trace_publish(t);
	source_release(&t->source);
	return 0;
}

int trace_next(struct trace *t, struct event *out, struct err *err)
{
	settle(t);
	if (!t->started)
		start(t);
	while (t->heap_count) {
		struct merge_head *top = &t->heap[0];
		struct stream *s = &t->streams[top->stream];
		const struct rec *rec;
		struct block *b;
		int r = 0;

		if (s->head == s->tail) {
			if (__builtin_expect(top->ticks >= t->horizon, 0))
				return 0;
			if (s->ended) {
				*top = t->heap[--t->heap_count];
			} else {
				r = stream_more(s, &t->context, err);
				if (r)
					return r;
				head_of(t, s, top);
			}
			settle_top(t);
			continue;
		}
		rec = &s->queue[s->head];
		if (__builtin_expect(rec->ticks >= t->horizon, 0))
			return 0;
		if (rec->ticks != top->ticks) {
			/* A search of repair.c decoded it, so its time is known now. */
			head_of(t, s, top);
			settle_top(t);
			continue;
		}
		t->last_ticks = rec->ticks;
		switch (rec->kind) {
		case TRACE_ALLOC:
			r = apply_alloc(t, top->stream, rec, out, err);
			if (r == 3)
				continue;
			break;
		case TRACE_FREE:
			b = live_take(&t->live, rec->address);
			if (__builtin_expect(!b, 0)) {
				r = apply_early_free(t, top->stream, rec, out, err);
				if (r == 3)
					continue;
				rec = &s->queue[s->head]; /* the queue may have moved */
				break;
			}
			apply_free(t, rec, b, rec->ticks, out);
			r = 1;
			break;
		case TRACE_UNFREE:
			r = apply_unfree(t, rec, out, err);
			break;
		case TRACE_TASK:
			r = apply_task(t, rec, err);
			break;
		case TRACE_TASK_END:
			r = apply_task_end(t, rec, out);
			break;
		case REC_EXTENDED:
			r = apply_extended(t, rec, out);
			break;
		}
		if (r < 0)
			return r;
		if (r == 2)
			return 1;
		if (t->look_credit < LOOK_MAX)
			t->look_credit += LOOK_GAIN;
		t->counts.events += is_counted(rec);
		s->head++;
		if (s->head + AHEAD < s->tail && s->queue[s->head + AHEAD].kind == TRACE_FREE)
			live_prefetch_block(&t->live, s->queue[s->head + AHEAD].address);
		head_of(t, s, top);
		settle_top(t);
		if (r)
			return 1;
	}
	return t->follow ? 0 : finish(t, err);
}

void trace_rewind_spaces(struct trace *t)
{
	settle(t);
	live_clear(&t->live, false); /* hardly any block will be live */
	trace_rewind(t);
	t->context.skip_blocks = true;
}

void trace_release_live(struct trace *t)
{
	settle(t);
	live_clear(&t->live, false);
}

void trace_rewind(struct trace *t)
{
	t->context.skip_blocks = false;
	settle(t);
	outside_rewind(&t->outside);
	locked_rewind(t);
	t->started = false;
	t->counts = (struct trace_counts){0};
	t->serial = 0;
	t->over_live = false;
	/* The first use of stacks may need all of them, which takes as much memory. */
	live_clear(&t->live, trace_has_folded(t));
	map_clear(&t->tasks);
	t->context.bytes_read = 0;
	for (size_t i = 0; i < t->threads.count; i++)
		t->threads.items[i].allocs = t->threads.items[i].frees = 0;
	if (t->states.count)
		memset(t->states.items, 0, t->states.count * sizeof(*t->states.items));
}
