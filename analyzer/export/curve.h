/*
 * curve.h - a value over the run in a fixed number of buckets of equal length, which doubles when
 * the run outgrows them. Of each bucket the least and the most stay, in their order, and the last.
 */
#ifndef ANALYZER_EXPORT_CURVE_H
#define ANALYZER_EXPORT_CURVE_H

#include <stdbool.h>
#include <stdint.h>

#define CURVE_BUCKETS 2048u /* twice what a screen shows */

struct curve_point {
	uint64_t time_ns, value;
};
struct curve_bucket {
	struct curve_point least, most, last;
	bool any;
};
struct curve {
	struct curve_bucket *buckets; /* CURVE_BUCKETS; NULL before the first value */
	unsigned shift; /* a bucket is 1 << shift ns */
	uint64_t value; /* the newest */
	bool any;
};

/* Note the value from that time on; times never fall. 0 or -ENOMEM. */
int curve_add(struct curve *c, uint64_t time_ns, uint64_t value);
/* Call `fn` for the points in order of time. Returns what `fn` returned first other than 0. */
int curve_each(
    const struct curve *c, int (*fn)(void *arg, uint64_t time_ns, uint64_t value), void *arg);
void curve_fini(struct curve *c);

#endif
