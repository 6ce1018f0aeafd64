/*
 * event_log.h - the log of events other than the host's blocks (live_blocks.h has those), for the
 * next checkpoint: mappings and blocks of other spaces that are not released yet, and, as far as
 * room allows, events that pair with nothing. Bounded, in memory of our own; kept only in mode
 * sampled.
 */
#ifndef SHIM_EVENT_LOG_H
#define SHIM_EVENT_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "whyoom/trace.h"

/* A multiple of EVENT_LOG_UNIT bytes. `body` is what follows dt in the trace. */
struct event_log_record {
	uint64_t ticks;
	uint32_t thread, tid;
	uint16_t length; /* of the body, bytes */
	uint8_t kind; /* enum trace_event_kind; 0: nothing here */
	uint8_t body[];
};
#define EVENT_LOG_UNIT 32u

static inline uint32_t event_log_units(uint32_t length)
{
	return ((uint32_t)sizeof(struct event_log_record) + length + EVENT_LOG_UNIT - 1) /
	       EVENT_LOG_UNIT;
}

/* Adds the event that is about to be committed; `body` includes its dt. Any thread, in the middle
 * of a record. Takes no lock; waits only when the segment is full and another thread compacts it.
 */
void event_log_add(uint32_t serial, uint32_t tid, enum trace_event_kind kind, uint64_t ticks,
    const uint8_t *body, uint32_t length);

/* Reserves the memory that event_log_begin() takes. Call before a chunk once a checkpoint is near.
 * Pre: signals are blocked. */
void event_log_reserve(void);

/* Compacts the log and freezes it until event_log_end(); false: not possible now. New events still
 * come, into a second segment. Pre: signals are blocked. */
bool event_log_begin(void);
void event_log_end(void);
/* Returns the first record, or the one after `previous`; NULL: there is none. Records come nearly
 * in the order of time. Pre: the log is frozen. */
const struct event_log_record *event_log_next(const struct event_log_record *previous);
/* How many events found no room since the start. Pre: the log is frozen. */
uint64_t event_log_left_out(void);

/* Estimates how many bytes a checkpoint needs for the log. */
uint64_t event_log_bytes(void);

/* Starts an empty log in the child of a fork. */
void event_log_forked(void);

#endif
