/*
 * extended.h - events with a length: from the bytes of a record to its fields, from these to an
 * event, and back. The one place of the analyzer that knows what each kind's fields mean; their
 * order stands in trace_kinds.def. For the files of trace/ only.
 */
#ifndef ANALYZER_TRACE_EXTENDED_H
#define ANALYZER_TRACE_EXTENDED_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/cursor.h"
#include "trace/event.h"
#include "whyoom/trace_fields.h"

struct trace;
struct trace_writer;

/* A decoded record on its way through the merge. */
struct extended {
	uint16_t kind;
	union trace_fields fields;
	uint32_t level_count;
	struct event_level levels[];
};

/* What extended_read() finds in a body. */
struct extended_body {
	union trace_fields fields; /* 0: the record does not have that field */
	bool has_stack; /* the kind has a stack */
	uint64_t stack; /* its id, as written */
	uint32_t level_count;
	struct cursor levels; /* at the first key */
};

/* Whether this reader knows the kind. */
bool extended_is_known(uint64_t kind);
/* Read the body of a known kind, from behind dt on. False: it contradicts the format. Bytes behind
 * the last field are ignored, as a newer minor version may have written them. */
bool extended_read(uint64_t kind, struct cursor *body, struct extended_body *out);
/* A copy of it for the caller to free(); NULL: no memory. */
struct extended *extended_new(uint64_t kind, const struct extended_body *body);

/* Complete *out, which has the record's time, thread and stack. False: this kind is no event.
 * out->levels points into *record. */
bool extended_to_event(struct trace *t, const struct extended *record, struct event *out);

/* The fields that an event is written with, and the kind; 0: it has no such record. Strings, stacks
 * and spaces that it names are defined in the file that `w` writes. */
uint64_t extended_of_event(
    struct trace_writer *w, const struct event *e, union trace_fields *fields);
/* How many fields a record has. `more`: it has those that depend on the minor version alone. */
unsigned extended_count(uint64_t kind, const union trace_fields *fields, bool more);

#endif
