/*
 * event_log.h - what a checkpoint will hold of the events that are not the host's blocks (those are
 * in live_blocks.h's table): mappings and blocks of other spaces whose release has not come, and of
 * what pairs with nothing, so much as there is room for. In memory of our own, and bounded; kept
 * only where records are by the table of known blocks.
 *
 * event_log_event() is for any thread in the middle of a record: no lock, no waiting but when the
 * room for what is new is used up and another thread is at it.
 */
#ifndef SHIM_KEEP_H
#define SHIM_KEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "whyoom/trace.h"

/* One that is kept. `body` is what follows dt in the trace. A multiple of EVENT_LOG_UNIT bytes. */
struct event_log_record {
	uint64_t ticks;
	uint32_t thread, tid;
	uint32_t left_out; /* scratch */
	uint16_t length; /* of the body */
	uint8_t kind; /* enum trace_event_kind; 0: nothing here */
	uint8_t unused;
	uint8_t body[];
};
#define EVENT_LOG_UNIT 32u

static inline uint32_t event_log_units(uint32_t length)
{
	return ((uint32_t)sizeof(struct event_log_record) + length + EVENT_LOG_UNIT - 1) /
	       EVENT_LOG_UNIT;
}

/* The event that is about to be committed; `body` with its dt. */
void event_log_event(uint32_t serial, uint32_t tid, enum trace_event_kind kind, uint64_t ticks,
    const uint8_t *body, uint32_t length);

/* Before a chunk, where a checkpoint is near: has what memory event_log_begin() will take. Signals
 * are blocked. */
void event_log_prepare(void);

/* Holds what is kept as of now, tidied up, until event_log_end(); false: not now. Signals are
 * blocked. New events go on, into what little room they have meanwhile. */
bool event_log_begin(void);
void event_log_end(void);
/* While it is held: the first record, or the one after; NULL: no more. In the order in which they
 * came, which is nearly that of time. */
const struct event_log_record *event_log_next(const struct event_log_record *previous);
/* While it is held: how many events had no room, since the start. */
uint64_t event_log_left_out(void);

/* About what a checkpoint needs for it, bytes. */
uint64_t event_log_bytes(void);

/* In the child of a fork: nothing. */
void event_log_forked(void);

#endif
