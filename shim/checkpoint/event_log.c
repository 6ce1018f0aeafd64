/*
 * event_log.c - see event_log.h. New events go into one of two segments, by an atomic add; the one
 * that is full is added to what is kept, and tidied up (event_log_compact.c), by the thread that
 * found it full, while others go on in the other.
 */
#include "checkpoint/event_log.h"

#include <string.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/shim_state.h"
#include "base/sys.h"
#include "checkpoint/event_log_compact.h"
#include "sampling/sampler.h"

#define KEPT_MAX (4u << 20) /* bytes */
#define KEPT_MIN (128u << 10)
#define RESIDENT (512u << 10) /* of the memory for tidying up, once a checkpoint is near */

struct segment {
	uint32_t units; /* it has room for */
	uint32_t used; /* claimed; grows beyond `units` when it is full */
	uint32_t done; /* of what was claimed: written, or never to be */
	uint8_t records[] __attribute__((aligned(EVENT_LOG_UNIT)));
};

static struct {
	int lock; /* signals are blocked while it is held */
	bool failed; /* no memory */
	struct segment *active, *spare;
	struct event_log_compaction kept;
	uint32_t room, segment; /* units of kept.records, and of each segment */
	bool releases_lost;
	uint64_t lost;
} keep;

/* What each process with a budget of 64 MiB and more has; smaller ones have less. */
static uint32_t kept_units(void)
{
	uint64_t bytes = options.max_trace / 16;

	bytes = bytes > KEPT_MAX ? KEPT_MAX : bytes < KEPT_MIN ? KEPT_MIN : bytes;
	return (uint32_t)(bytes / EVENT_LOG_UNIT);
}

static size_t segment_bytes(void)
{
	return sizeof(struct segment) + (size_t)keep.segment * EVENT_LOG_UNIT;
}

static struct segment *segment_new(void)
{
	struct segment *s = sys_pages(segment_bytes());

	if (s)
		s->units = keep.segment;
	return s;
}

static bool take_lock(void)
{
	return !__atomic_exchange_n(&keep.lock, 1, __ATOMIC_ACQUIRE);
}

static void free_lock(void)
{
	__atomic_store_n(&keep.lock, 0, __ATOMIC_RELEASE);
}

/* Under the lock: the segment that was the spare one. What a fork finds there it gives back once.
 */
static void use_spare(void)
{
	struct segment *next = keep.spare;

	__atomic_store_n(&keep.spare, NULL, __ATOMIC_RELEASE);
	__atomic_store_n(&keep.active, next, __ATOMIC_RELEASE);
}

/* Under the lock: memory for when the present segment, and the next, is added. */
static void prepare_tidying(size_t resident)
{
	scratch_ready(
	    &keep.kept.hold, event_log_compact_bytes(keep.kept.units + 2 * keep.segment), resident);
}

/* Under the lock. */
static bool begin(void)
{
	if (keep.active)
		return true;
	if (keep.failed)
		return false;
	keep.segment = kept_units() / 8;
	keep.room = kept_units() + keep.segment;
	if (!keep.kept.records)
		keep.kept.records = sys_pages(keep.room * EVENT_LOG_UNIT);
	if (!keep.spare)
		keep.spare = segment_new();
	keep.kept.most = kept_units();
	keep.failed = !keep.kept.records || !keep.spare;
	if (!keep.failed) {
		use_spare();
		keep.spare = segment_new();
		prepare_tidying(0);
	}
	return !keep.failed;
}

/* All who had claimed room there have written. False: one of them does not come to it. */
static bool close_segment(struct segment *s, uint32_t *used)
{
	uint64_t until = clock_ticks() + 5 * tick_clock.ticks_100ms;

	*used = __atomic_fetch_add(&s->used, s->units, __ATOMIC_ACQ_REL);
	if (*used > s->units)
		*used = s->units;
	while (__atomic_load_n(&s->done, __ATOMIC_ACQUIRE) < *used) {
		if (clock_ticks() > until)
			return false;
		sys_yield();
	}
	return true;
}

/* Up to the first that is not whole: what comes behind it cannot be told apart. */
static uint32_t written(const struct segment *s, uint32_t used)
{
	uint32_t at = 0;

	while (at < used) {
		const struct event_log_record *r =
		    (const void *)(s->records + (size_t)at * EVENT_LOG_UNIT);

		if (!__atomic_load_n(&r->kind, __ATOMIC_ACQUIRE) ||
		    at + event_log_units(r->length) > used)
			break;
		at += event_log_units(r->length);
	}
	return at;
}

/* Under the lock: what is new comes to what is kept. False: there is no second segment. */
static bool gather(void)
{
	struct segment *full;
	uint32_t used;
	bool whole;

	if (!begin())
		return false;
	if (!keep.spare)
		keep.spare = segment_new();
	if (!keep.spare)
		return false;
	full = keep.active;
	use_spare();
	whole = close_segment(full, &used);
	if (!whole)
		used = written(full, used);
	memcpy(keep.kept.records + (size_t)keep.kept.units * EVENT_LOG_UNIT, full->records,
	    used * EVENT_LOG_UNIT);
	keep.kept.units += used;
	keep.kept.settled = clock_ticks() - tick_clock.ticks_100ms;
	keep.kept.releases_lost |=
	    __atomic_exchange_n(&keep.releases_lost, false, __ATOMIC_RELAXED) || !whole;
	keep.kept.left_out += __atomic_exchange_n(&keep.lost, 0, __ATOMIC_RELAXED);
	event_log_compact(&keep.kept);
	prepare_tidying(0);
	if (!whole)
		return true; /* somebody may still write there: it is left to whom that is */
	memset(full->records, 0, used * EVENT_LOG_UNIT);
	full->done = 0;
	keep.spare = full;
	__atomic_store_n(&full->used, 0, __ATOMIC_RELEASE);
	return true;
}

/* Room was used up, or there is none yet. */
static void make_room(const struct segment *full)
{
	uint64_t signals = sys_block_signals();

	if (take_lock()) {
		if (__atomic_load_n(&keep.active, __ATOMIC_RELAXED) == full) {
			if (full)
				gather();
			else
				begin();
		}
		free_lock();
	} else {
		sys_yield();
	}
	sys_restore_signals(signals);
}

static struct event_log_record *claim(uint32_t units, struct segment **where)
{
	uint64_t until = 0;

	do {
		struct segment *s = __atomic_load_n(&keep.active, __ATOMIC_ACQUIRE);
		uint32_t at = s ? __atomic_load_n(&s->used, __ATOMIC_RELAXED) : 0;

		if (s && at < s->units) {
			at = __atomic_fetch_add(&s->used, units, __ATOMIC_ACQ_REL);
			if (at + units <= s->units) {
				*where = s;
				return (struct event_log_record *)(void *)(s->records +
									   at * EVENT_LOG_UNIT);
			}
			if (at < s->units) /* the first that did not fit */
				__atomic_fetch_add(&s->done, s->units - at, __ATOMIC_RELEASE);
		}
		if (keep.failed || shim.sandboxed)
			return NULL;
		make_room(s);
		if (!until)
			until = clock_ticks() + 10 * tick_clock.ticks_100ms;
	} while (clock_ticks() < until);
	return NULL;
}

static bool is_kept(enum trace_event_kind kind)
{
	return kind != TRACE_ALLOC_WIDE && kind != TRACE_FREE_WIDE && kind != TRACE_SAMPLED_ALLOC &&
	       kind != TRACE_SHARED_THREAD;
}

static bool is_release(enum trace_event_kind kind)
{
	return kind == TRACE_SPACE_FREE || kind == TRACE_SPACE_UNMAP || kind == TRACE_UNMAP ||
	       kind == TRACE_SPACE_CLEAR || kind == TRACE_BRK;
}

void event_log_event(uint32_t serial, uint32_t tid, enum trace_event_kind kind, uint64_t ticks,
    const uint8_t *body, uint32_t length)
{
	struct event_log_record *r = NULL;
	struct segment *where = NULL;

	if (!is_kept(kind))
		return;
	/* the body of each event begins with dt */
	while (length && (*body & 0x80)) {
		body++;
		length--;
	}
	if (length) {
		body++;
		length--;
	}
	if (length <= UINT16_MAX)
		r = claim(event_log_units(length), &where);
	if (!r) {
		__atomic_fetch_add(&keep.lost, 1, __ATOMIC_RELAXED);
		if (is_release(kind))
			__atomic_store_n(&keep.releases_lost, true, __ATOMIC_RELAXED);
		return;
	}
	r->ticks = ticks;
	r->thread = serial;
	r->tid = tid;
	r->length = (uint16_t)length;
	memcpy(r->body, body, length);
	__atomic_store_n(&r->kind, (uint8_t)kind, __ATOMIC_RELEASE);
	__atomic_fetch_add(&where->done, event_log_units(length), __ATOMIC_RELEASE);
}

void event_log_prepare(void)
{
	if (!take_lock())
		return;
	if (keep.active)
		prepare_tidying(RESIDENT);
	free_lock();
}

bool event_log_begin(void)
{
	uint64_t until = clock_ticks() + 5 * tick_clock.ticks_100ms;

	while (!take_lock()) {
		if (clock_ticks() > until)
			return false;
		sys_yield();
	}
	if (gather())
		return true;
	free_lock();
	return false;
}

void event_log_end(void)
{
	free_lock();
}

const struct event_log_record *event_log_next(const struct event_log_record *previous)
{
	const uint8_t *p = keep.kept.records, *end = p + (size_t)keep.kept.units * EVENT_LOG_UNIT;

	if (previous)
		p = (const uint8_t *)previous + event_log_units(previous->length) * EVENT_LOG_UNIT;
	return p < end ? (const struct event_log_record *)(const void *)p : NULL;
}

uint64_t event_log_left_out(void)
{
	return keep.kept.left_out;
}

uint64_t event_log_bytes(void)
{
	struct segment *s = __atomic_load_n(&keep.active, __ATOMIC_ACQUIRE);
	uint32_t used = s ? __atomic_load_n(&s->used, __ATOMIC_RELAXED) : 0;

	return ((uint64_t)__atomic_load_n(&keep.kept.units, __ATOMIC_RELAXED) +
		   (s && used > s->units ? s->units : used)) *
	       EVENT_LOG_UNIT;
}

void event_log_forked(void)
{
	sys_pages_free(keep.active, segment_bytes());
	sys_pages_free(keep.spare, segment_bytes());
	sys_pages_free(keep.kept.records, (size_t)keep.room * EVENT_LOG_UNIT);
	scratch_forget(&keep.kept.hold);
	memset(&keep, 0, sizeof(keep));
}
