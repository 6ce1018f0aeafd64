/*
 * repair.h - what another thread did with an address a little earlier or later than its clock says:
 * "What the order means" in docs/trace-format.md.
 */
#ifndef TRACE_REPAIR_H
#define TRACE_REPAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/reader.h"

/* How many waiting events (of locked.c: mappings) all searches may look at: so much at first, and
 * so much more for each event that is read. */
#define LOOK_FIRST 4000000
#define LOOK_GAIN 16
#define LOOK_MAX (1ll << 40)

/* The first of those records of kind `kind`, TRACE_FREE or TRACE_ALLOC, that are the next one of
 * `of`'s address in a thread, another one or, where `own` is true, in that of `of` itself at the
 * top, within `window` ticks: moved to the front of its stream's queue by marking it gone, and
 * copied out. May move `of`'s queue. 1: found; 0; negative errno. */
int repair_find(struct trace *t, const struct rec *of, bool own, unsigned kind, uint64_t window,
    struct rec *found, struct err *err);

/* Whether another thread released what was at this address just before. */
bool repair_just_released(struct trace *t, const struct rec *rec);

#endif
