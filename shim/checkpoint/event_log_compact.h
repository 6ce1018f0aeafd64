/*
 * event_log_compact.h - which of the kept events no longer matter: what was released since, and
 * what is too much. Knows the bodies of events; its memory is the caller's hold, for the time of
 * the call.
 */
#ifndef SHIM_KEEP_TIDY_H
#define SHIM_KEEP_TIDY_H

#include <stdint.h>

#include "base/scratch.h"

struct event_log_compaction {
	struct hold hold; /* for the work; nothing taken */
	uint8_t *records; /* struct event_log_record, EVENT_LOG_UNIT aligned; in and out */
	uint32_t units; /* in and out */
	uint32_t most; /* units that may be left */
	uint64_t settled; /* ticks: releases after these may still be taken back */
	uint64_t pause; /* ticks between two levels of a kind that are kept; raised as need be */
	uint64_t left_out; /* raised by each that mattered and had no room */
	int releases_lost; /* not all releases are there: then what they release is not to be kept.
			    * 0 when that was done */
};

/* Where there is no memory for it, everything stays as it is, unless it is too much: then all of it
 * goes. */
void event_log_compact(struct event_log_compaction *k);

/* Bytes of the hold that so many units take, about and at most. */
size_t event_log_compact_bytes(uint32_t units);

#endif
