/*
 * trace_fields.h - the fields of each event with a length, by name, as trace_kinds.def lists them:
 * struct trace_MAP holds the fields of a MAP record after dt. Each field is one varint of the
 * record, so the struct is also an array of its numbers in the order in which they are written.
 * LEVELS is the number of levels; their keys and values follow that varint.
 */
#ifndef WHYOOM_TRACE_FIELDS_H
#define WHYOOM_TRACE_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#define TRACE_KIND(id, NAME, KEEP, meaning, fields)                                                \
	struct trace_##NAME {                                                                      \
		fields                                                                             \
	};
#define TRACE_FIELD(TYPE, name) uint64_t name;
#define TRACE_LATER(TYPE, name) uint64_t name;
#include "trace_kinds.def"

/* The fields of any one kind. */
union trace_fields {
#define TRACE_KIND(id, NAME, KEEP, meaning, fields) struct trace_##NAME NAME;
#include "trace_kinds.def"
};
#define TRACE_FIELDS_MAX (sizeof(union trace_fields) / sizeof(uint64_t))

/* The number of fields of a kind before the one of that name. */
#define TRACE_FIELDS_BEFORE(NAME, name) (offsetof(struct trace_##NAME, name) / sizeof(uint64_t))

enum trace_field_type {
	TRACE_FIELD_NONE = 0, /* the row of an id that is no event with a length */
	TRACE_FIELD_NUMBER,
	TRACE_FIELD_STRING,
	TRACE_FIELD_STACK,
	TRACE_FIELD_LEVELS,
	TRACE_FIELD_END, /* behind the last field */
	TRACE_FIELD_LATER = 8, /* a bit beside the type: not all records have the field */
};

/* The types of each kind's fields. */
static const uint8_t trace_field_types[][TRACE_FIELDS_MAX + 1] = {
#define TRACE_KIND(id, NAME, KEEP, meaning, fields) [id] = {fields TRACE_FIELD_END},
#define TRACE_FIELD(TYPE, name) TRACE_FIELD_##TYPE,
#define TRACE_LATER(TYPE, name) TRACE_FIELD_##TYPE | TRACE_FIELD_LATER,
#include "trace_kinds.def"
};
#define TRACE_KINDS (sizeof(trace_field_types) / sizeof(trace_field_types[0]))

#endif
