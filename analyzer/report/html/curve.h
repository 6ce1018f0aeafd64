/*
 * curve.h - the bytes of a space over a stretch of time, in buckets of equal length: least, most
 * and last in each, and the last of each group of call sites. Constant work for a change.
 */
#ifndef ANALYZER_REPORT_CURVE_H
#define ANALYZER_REPORT_CURVE_H

#include "report/html/block.h"

#define CURVE_BUCKETS 2000u /* about as many as a wide screen has columns */
#define CURVE_LATE_BUCKETS 600u /* of the last stretch, which is drawn beside it */
#define CURVE_GROUPS 13u /* the largest call sites, and the rest */

struct curve {
	uint64_t from_ns, until_ns;
	uint32_t buckets, at; /* at: the current bucket */
	uint64_t live; /* now */
	uint64_t group[CURVE_GROUPS];
	uint64_t *least, *most, *last; /* by bucket */
	uint64_t *groups; /* by bucket and group */
};

/* 0 or -ENOMEM. */
int curve_init(struct curve *c, uint64_t from_ns, uint64_t until_ns, uint32_t buckets);
void curve_fini(struct curve *c);
/* Note that a group's bytes changed at that time, which is not before the last one. What changes at
 * the curve's end or later is not its own. */
void curve_change(struct curve *c, uint64_t time_ns, uint32_t group, int64_t bytes);
/* Call after the last change. */
void curve_end(struct curve *c);
void curve_write(const struct curve *c, struct str *to);

#endif
