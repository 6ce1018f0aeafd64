/*
 * event_log_compact.h - removes from the event log what no longer matters: events whose counterpart
 * came since, and, beyond the bound, what matters least. Knows the bodies of events.
 */
#ifndef SHIM_EVENT_LOG_COMPACT_H
#define SHIM_EVENT_LOG_COMPACT_H

#include <stdint.h>

#include "base/scratch.h"
#include "whyoom/trace_fields.h"

/* What happens to records when there is too little room: see KEEP in trace_kinds.def. */
enum event_log_keep {
	EVENT_LOG_NEVER,
	EVENT_LOG_STATE,
	EVENT_LOG_RECENT,
	EVENT_LOG_SAMPLE,
	EVENT_LOG_FAILURE,
	EVENT_LOG_CALL,
	EVENT_LOG_ADVICE,
	EVENT_LOG_CLASSES,
	EVENT_LOG_PAIRED = EVENT_LOG_CLASSES,
	EVENT_LOG_VARIES,
};
/* By enum trace_event_kind. */
static const uint8_t event_log_keep[TRACE_KINDS] = {
#define TRACE_KIND(id, NAME, KEEP, meaning, fields) [id] = EVENT_LOG_##KEEP,
#include "whyoom/trace_kinds.def"
};

struct event_log_compaction {
	struct scratch hold; /* working memory; free between calls */
	uint8_t *records; /* struct event_log_record, EVENT_LOG_UNIT aligned; in and out */
	uint32_t units; /* in and out */
	uint32_t most; /* units that may be left */
	uint64_t settled; /* ticks: a release after these may still be taken back */
	uint64_t pause; /* ticks between two levels of a kind; raised as needed */
	uint64_t left_out; /* raised for each event that mattered and found no room */
	int releases_lost; /* some releases are missing, so no state can be trusted and all of it
			    * is dropped; reset when that is done */
};

/* Compacts k->records in place. Without memory for the work nothing changes, unless the records
 * exceed the bound: then all are dropped. */
void event_log_compact(struct event_log_compaction *k);

/* The most working memory that compaction of `units` takes, in bytes. */
size_t event_log_compact_bytes(uint32_t units);

#endif
