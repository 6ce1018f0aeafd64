/*
 * event_log.c - see event_log.h. An event claims room in the active segment by an atomic add. The
 * thread that finds the segment full makes the spare one active, appends the full one to the
 * retained records and compacts these (event_log_compact.c), while the other threads go on.
 */
#include "checkpoint/event_log.h"

#include <string.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/shim_state.h"
#include "base/sys.h"
#include "checkpoint/event_log_compact.h"

#define RETAINED_MAX (4u << 20) /* bytes */
#define RETAINED_MIN (128u << 10)
#define RESIDENT (512u << 10) /* bytes of scratch with pages, once a checkpoint is near */

struct segment {
	uint32_t units; /* room */
	uint32_t used; /* units claimed; grows beyond `units` when the segment is full */
	uint32_t done; /* claimed units that are written or never will be */
	uint8_t records[] __attribute__((aligned(EVENT_LOG_UNIT)));
};

static struct {
	int lock; /* signals are blocked while it is held */
	bool failed; /* no memory */
	struct segment *active, *spare;
	struct event_log_compaction retained;
	uint32_t retained_units, segment_units; /* room in retained.records and in each segment */
	bool releases_lost;
	uint64_t lost;
} event_log;

/* Room for retained records; reaches RETAINED_MAX at a budget of 64 MiB. */
static uint32_t units_max(void)
{
	uint64_t bytes = options.max_trace / 16;

	bytes = bytes > RETAINED_MAX ? RETAINED_MAX : bytes < RETAINED_MIN ? RETAINED_MIN : bytes;
	return (uint32_t)(bytes / EVENT_LOG_UNIT);
}

static size_t segment_bytes(void)
{
	return sizeof(struct segment) + (size_t)event_log.segment_units * EVENT_LOG_UNIT;
}

static struct segment *segment_new(void)
{
	struct segment *s = sys_pages(segment_bytes());

	if (s)
		s->units = event_log.segment_units;
	return s;
}

/* Under the lock: makes the spare segment active. The spare pointer is cleared first, so that the
 * child of a fork never frees the segment twice. */
static void use_spare(void)
{
	struct segment *next = event_log.spare;

	__atomic_store_n(&event_log.spare, NULL, __ATOMIC_RELEASE);
	__atomic_store_n(&event_log.active, next, __ATOMIC_RELEASE);
}

/* Under the lock: reserves scratch to compact with this and the next segment appended. */
static void reserve_scratch(size_t resident)
{
	scratch_ready(&event_log.retained.hold,
	    event_log_compact_bytes(event_log.retained.units + 2 * event_log.segment_units),
	    resident);
}

/* Under the lock. */
static bool allocate(void)
{
	if (event_log.active)
		return true;
	if (event_log.failed)
		return false;
	event_log.segment_units = units_max() / 8;
	event_log.retained_units = units_max() + event_log.segment_units;
	if (!event_log.retained.records)
		event_log.retained.records = sys_pages(event_log.retained_units * EVENT_LOG_UNIT);
	if (!event_log.spare)
		event_log.spare = segment_new();
	event_log.retained.most = units_max();
	event_log.failed = !event_log.retained.records || !event_log.spare;
	if (!event_log.failed) {
		use_spare();
		event_log.spare = segment_new();
		reserve_scratch(0);
	}
	return !event_log.failed;
}

/* Waits until all claimed records are written. False: a thread takes too long. */
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

/* Units up to the first incomplete record; nothing tells where the next one begins. */
static uint32_t written_units(const struct segment *s, uint32_t used)
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

/* Under the lock: appends the active segment to the retained records and compacts them. False:
 * there is no spare segment. */
static bool retire_segment(void)
{
	struct segment *full;
	uint32_t used;
	bool whole;

	if (!allocate())
		return false;
	if (!event_log.spare)
		event_log.spare = segment_new();
	if (!event_log.spare)
		return false;
	full = event_log.active;
	use_spare();
	whole = close_segment(full, &used);
	if (!whole)
		used = written_units(full, used);
	memcpy(event_log.retained.records + (size_t)event_log.retained.units * EVENT_LOG_UNIT,
	    full->records, used * EVENT_LOG_UNIT);
	event_log.retained.units += used;
	event_log.retained.settled = clock_ticks() - tick_clock.ticks_100ms;
	event_log.retained.releases_lost |=
	    __atomic_exchange_n(&event_log.releases_lost, false, __ATOMIC_RELAXED) || !whole;
	event_log.retained.left_out += __atomic_exchange_n(&event_log.lost, 0, __ATOMIC_RELAXED);
	event_log_compact(&event_log.retained);
	reserve_scratch(0);
	if (!whole)
		return true; /* a thread may still write there, so the segment is not used again */
	memset(full->records, 0, used * EVENT_LOG_UNIT);
	full->done = 0;
	event_log.spare = full;
	__atomic_store_n(&full->used, 0, __ATOMIC_RELEASE);
	return true;
}

/* Replaces the full segment; NULL: allocates the first. */
static void renew_segment(const struct segment *full)
{
	uint64_t signals = sys_block_signals();

	if (sys_try_lock(&event_log.lock)) {
		if (__atomic_load_n(&event_log.active, __ATOMIC_RELAXED) == full) {
			if (full)
				retire_segment();
			else
				allocate();
		}
		sys_unlock(&event_log.lock);
	} else {
		sys_yield();
	}
	sys_restore_signals(signals);
}

static struct event_log_record *claim(uint32_t units, struct segment **where)
{
	uint64_t until = 0;

	do {
		struct segment *s = __atomic_load_n(&event_log.active, __ATOMIC_ACQUIRE);
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
		if (event_log.failed || shim.sandboxed)
			return NULL;
		renew_segment(s);
		if (!until)
			until = clock_ticks() + 10 * tick_clock.ticks_100ms;
	} while (clock_ticks() < until);
	return NULL;
}

static bool is_release(enum trace_event_kind kind)
{
	return kind == TRACE_SPACE_FREE || kind == TRACE_SPACE_UNMAP || kind == TRACE_UNMAP ||
	       kind == TRACE_SPACE_CLEAR || kind == TRACE_BRK;
}

void event_log_add(uint32_t serial, uint32_t tid, enum trace_event_kind kind, uint64_t ticks,
    const uint8_t *body, uint32_t length)
{
	struct event_log_record *r = NULL;
	struct segment *where = NULL;

	if (event_log_keep[kind] == EVENT_LOG_NEVER)
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
		__atomic_fetch_add(&event_log.lost, 1, __ATOMIC_RELAXED);
		if (is_release(kind))
			__atomic_store_n(&event_log.releases_lost, true, __ATOMIC_RELAXED);
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

void event_log_reserve(void)
{
	if (!sys_try_lock(&event_log.lock))
		return;
	if (event_log.active)
		reserve_scratch(RESIDENT);
	sys_unlock(&event_log.lock);
}

bool event_log_begin(void)
{
	uint64_t until = clock_ticks() + 5 * tick_clock.ticks_100ms;

	while (!sys_try_lock(&event_log.lock)) {
		if (clock_ticks() > until)
			return false;
		sys_yield();
	}
	if (retire_segment())
		return true;
	sys_unlock(&event_log.lock);
	return false;
}

void event_log_end(void)
{
	sys_unlock(&event_log.lock);
}

const struct event_log_record *event_log_next(const struct event_log_record *previous)
{
	const uint8_t *p = event_log.retained.records,
		      *end = p + (size_t)event_log.retained.units * EVENT_LOG_UNIT;

	if (previous)
		p = (const uint8_t *)previous + event_log_units(previous->length) * EVENT_LOG_UNIT;
	return p < end ? (const struct event_log_record *)(const void *)p : NULL;
}

uint64_t event_log_left_out(void)
{
	return event_log.retained.left_out;
}

uint64_t event_log_bytes(void)
{
	struct segment *s = __atomic_load_n(&event_log.active, __ATOMIC_ACQUIRE);
	uint32_t used = s ? __atomic_load_n(&s->used, __ATOMIC_RELAXED) : 0;

	return ((uint64_t)__atomic_load_n(&event_log.retained.units, __ATOMIC_RELAXED) +
		   (s && used > s->units ? s->units : used)) *
	       EVENT_LOG_UNIT;
}

void event_log_forked(void)
{
	sys_pages_free(event_log.active, segment_bytes());
	sys_pages_free(event_log.spare, segment_bytes());
	sys_pages_free(
	    event_log.retained.records, (size_t)event_log.retained_units * EVENT_LOG_UNIT);
	scratch_forget(&event_log.retained.hold);
	memset(&event_log, 0, sizeof(event_log));
}
