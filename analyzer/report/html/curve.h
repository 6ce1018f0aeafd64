/*
 * curve.h - the bytes of a space over a stretch of time, in buckets of equal length: least, most
 * and last in each, and the last of each large call site and of each class of the ledger. Constant
 * work for a change.
 */
#ifndef ANALYZER_REPORT_CURVE_H
#define ANALYZER_REPORT_CURVE_H

#include "report/html/block.h"

#define CURVE_BUCKETS 2000u /* about as many as a wide screen has columns */
#define CURVE_LATE_BUCKETS 600u /* of the last stretch, which is drawn beside it */
#define CURVE_SITES 13u /* the largest call sites, and the rest */
#define CURVE_CLASSES 8u /* of the ledger, and the rest */
#define CURVE_GROUPS (CURVE_SITES + CURVE_CLASSES)

struct curve {
	uint64_t from_ns, until_ns;
	uint32_t buckets, at; /* at: the current bucket */
	uint64_t next_ns; /* where the next one begins */
	uint64_t live; /* now */
	uint64_t group[CURVE_GROUPS];
	uint64_t *least, *most, *last; /* by bucket */
	uint64_t *groups; /* by bucket and group */
};

/* 0 or -ENOMEM. */
int curve_init(struct curve *c, uint64_t from_ns, uint64_t until_ns, uint32_t buckets);
void curve_fini(struct curve *c);
/* Note that the bytes of a call site (by size) and a class changed at that time, which is not
 * before the last one. Numbers beyond the groups are of the rest. What changes at the curve's end
 * or later is not its own. */
void curve_change(struct curve *c, uint64_t time_ns, uint32_t site, uint32_t class, int64_t bytes);
/* Call after the last change. */
void curve_end(struct curve *c);
void curve_write(const struct curve *c, struct str *to);

#endif
