/*
 * callsite_parts.h - what the files of struct callsite share among themselves: callsite.c makes the
 * call sites and calls the others, which read a history and fill one part of it. All thresholds are
 * shares and ranks, never sizes, so that scaling a program changes nothing.
 */
#ifndef ANALYZER_MODEL_CALLSITE_PARTS_H
#define ANALYZER_MODEL_CALLSITE_PARTS_H

#include "model/callsite/callsite.h"
#include "util/tuned.h"

/* sizes.c */
/* A shorter series proves nothing. */
#define SIZES_MIN 4u
TUNED(unsigned, SIZES_UNUSUAL, 4u,
    "objects, or requests, of one kind differ by a factor of two or three");
/* Read the sizes from a call site's steps and stacks. If the allocator enlarges requests by less
 * than `padding` bytes, the smallest of similar blocks shows the requested size. */
void sizes_read(const struct callsite *c, const struct callsite_member *members, size_t count,
    uint64_t padding, struct callsite_sizes *out);
/* Compare with the other call sites, once survivors are known: take growth back that is over, or
 * that is nothing beside the line's other blocks. `out` is of `c`, one of `all`. */
void sizes_settle(const struct callsites *all, const struct callsite *c,
    const struct timeline *timeline, struct callsite_sizes *out);
/* True if the values rise, however little. */
bool sizes_rise(const struct callsite_sizes *s);

/* backlog.c: of a call site with steps, from its stacks; *out is zeroed before. */
void backlog_read(const struct callsite *c, const struct callsite_member *members, size_t count,
    struct backlog *out);
void buildup_read(const struct callsite *c, const struct callsite_member *members, size_t count,
    struct buildup *out);

TUNED(double, SURVIVORS_EVEN, 0.75, "two of eight eighths may be idle");
/* survivors.c: of `c`, one of `all`, from its steps. */
void survivors_read(const struct callsites *all, const struct callsite *c, struct survivors *out);

/* relations.c: fill .relations of all call sites, once their other parts are known. */
void relations_read(struct callsites *p);

/* holders.c: fill .holders of call sites that keep much. `members`: by call site. 0 or -ENOMEM. */
int holders_read(const struct feed *feed, struct callsites *p,
    const struct callsite_member *members, size_t count);

#endif
