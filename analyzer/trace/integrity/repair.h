/*
 * repair.h - finds the event of another thread whose clock put it slightly too early or too late.
 * See "What the order means" in docs/trace-format.md.
 */
#ifndef TRACE_REPAIR_H
#define TRACE_REPAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/reader.h"

/* A budget for all searches together, in waiting events (in locked.c: mappings) that they look at:
 * its first value, what each event read adds, and its largest value. */
#define LOOK_FIRST 4000000
#define LOOK_GAIN 16
#define LOOK_MAX (1ll << 40)

/* Find the earliest record of `kind` (TRACE_FREE or TRACE_ALLOC) within `window` ticks that is the
 * next one of the address of `of` in another thread; with `own`, in the thread of `of` too. Copies
 * it to *found and marks it REC_APPLIED. May move the queue that holds `of`. 1: found; 0: none;
 * negative errno. */
int repair_find(struct trace *t, const struct rec *of, bool own, unsigned kind, uint64_t window,
    struct rec *found, struct err *err);

/* True: another thread has just released a block at this address. */
bool repair_just_released(struct trace *t, const struct rec *rec);

#endif
