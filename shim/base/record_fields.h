/*
 * record_fields.h - the fields of an event with a length, to and from the bytes behind its dt, in
 * the order of trace_kinds.def. Both halves are for memory that the caller has made sure of: see
 * varint.h.
 */
#ifndef SHIM_BASE_RECORD_FIELDS_H
#define SHIM_BASE_RECORD_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/varint.h"
#include "whyoom/trace.h"
#include "whyoom/trace_fields.h"

struct level {
	uint32_t key; /* enum trace_level */
	uint64_t value;
};

/*
 * FIELDS_PUT(p, MAP, levels, .address = ..., ...) writes all fields of a MAP, those that are not
 * named as 0, and returns the place behind them. FIELDS_PUT_BEFORE(p, MAP, name, levels, ...) stops
 * before the field `name`: what follows is LATER, and this record does not have it. `levels` has as
 * many elements as the field of that name says; NULL: the kind has none. All folds into one
 * varint_put() a field.
 */
#define FIELDS_PUT(p, NAME, levels, ...)                                                           \
	fields_put_##NAME(p, &(struct trace_##NAME){__VA_ARGS__}, levels,                          \
	    sizeof(struct trace_##NAME) / sizeof(uint64_t))
#define FIELDS_PUT_BEFORE(p, NAME, name, levels, ...)                                              \
	fields_put_##NAME(                                                                         \
	    p, &(struct trace_##NAME){__VA_ARGS__}, levels, TRACE_FIELDS_BEFORE(NAME, name))

static __attribute__((noinline, unused)) uint8_t *fields_put_levels(
    uint8_t *p, const struct level *levels, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		p = varint_put(p, levels[i].key);
		p = varint_put(p, levels[i].value);
	}
	return p;
}

#define FIELDS_AFTER_NUMBER(value)
#define FIELDS_AFTER_STRING(value)
#define FIELDS_AFTER_STACK(value)
#define FIELDS_AFTER_LEVELS(value) p = fields_put_levels(p, levels, value);
#define TRACE_FIELD(TYPE, name)                                                                    \
	p = varint_put(p, f->name);                                                                \
	FIELDS_AFTER_##TYPE(f->name)
#define TRACE_LATER(TYPE, name)                                                                    \
	if (offsetof(__typeof__(*f), name) < count * sizeof(uint64_t)) {                           \
		TRACE_FIELD(TYPE, name)                                                            \
	}
#define TRACE_KIND(id, NAME, KEEP, meaning, fields)                                                \
	static inline __attribute__((always_inline, unused)) uint8_t *fields_put_##NAME(           \
	    uint8_t *p, const struct trace_##NAME *f, const struct level *levels, size_t count)    \
	{                                                                                          \
		(void)f;                                                                           \
		(void)levels;                                                                      \
		(void)count;                                                                       \
		fields;                                                                            \
		return p;                                                                          \
	}
#include "whyoom/trace_kinds.def"

/* A NOTICE of a sample says which. */
static inline uint8_t *fields_put_notice(uint8_t *p, const struct trace_NOTICE *f)
{
	bool sample = f->what == TRACE_NOTICE_MODE || f->what == TRACE_NOTICE_RATE ||
		      f->what == TRACE_NOTICE_THINNED;

	return fields_put_NOTICE(
	    p, f, NULL, sample ? sizeof(*f) / sizeof(uint64_t) : TRACE_FIELDS_BEFORE(NOTICE, mean));
}

/* Reads what the shim wrote itself: the fields of `kind`, those that are missing as 0, and up to
 * `room` levels of those that there are. How many of these were read. */
static inline unsigned fields_get(unsigned kind, const uint8_t *p, const uint8_t *end,
    union trace_fields *out, struct level *levels, unsigned room)
{
	uint64_t *field = (uint64_t *)out;
	unsigned count = 0;

	memset(out, 0, sizeof(*out));
	for (unsigned i = 0; kind < TRACE_KINDS && p && p < end; i++) {
		unsigned type = trace_field_types[kind][i] & ~(unsigned)TRACE_FIELD_LATER;

		if (type == TRACE_FIELD_NONE || type == TRACE_FIELD_END)
			break;
		p = varint_get(p, end, &field[i]);
		for (uint64_t n = 0; type == TRACE_FIELD_LEVELS && n < field[i] && p && p < end;
		     n++) {
			uint64_t key = 0, value = 0;

			p = varint_get(p, end, &key);
			p = varint_get(p, end, &value);
			if (count < room)
				levels[count++] = (struct level){(uint32_t)key, value};
		}
	}
	return count;
}

#endif
