/* events.h - opens a composed trace and asserts its events, one by one. */
#ifndef TESTS_UNIT_TRACE_EVENTS_H
#define TESTS_UNIT_TRACE_EVENTS_H

#include <string.h>

#include "compose.h"
#include "trace/reader.h"
#include "unit.h"

static inline struct trace *open_composed(struct compose *c)
{
	struct err err = {""};
	struct trace *t = NULL;

	if (trace_open(compose_save(c), &t, &err))
		fail_msg("%s", err.text);
	return t;
}

static inline struct event next_event(struct trace *t)
{
	struct event event;
	struct err err = {""};
	int r;

	memset(&event, 0xaa, sizeof(event)); /* makes fields show that are not filled in */
	r = trace_next(t, &event, &err);
	if (r != 1)
		fail_msg("no further event: %d %s", r, err.text);
	return event;
}

static inline void no_more(struct trace *t)
{
	struct event event;
	struct err err = {""};

	assert_int_equal(trace_next(t, &event, &err), 0);
	assert_int_equal(trace_next(t, &event, &err), 0); /* and so it stays */
}

/* An ALLOC or FREE of a known block. */
static inline struct event expect(struct trace *t, enum event_kind kind, uint64_t ns,
    uint32_t thread, uint64_t address, uint64_t size)
{
	struct event e = next_event(t);

	assert_int_equal(e.kind, kind);
	assert_int_equal(e.time_ns, ns);
	assert_int_equal(e.thread, thread);
	assert_true(e.address == address);
	assert_true(e.size == size);
	assert_non_null(e.block);
	assert_true(e.block->address == address && e.block->size == size);
	return e;
}

#endif
