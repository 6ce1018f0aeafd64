/*
 * points.h - a value over the run in a fixed number of buckets of equal length, which doubles when
 * the run outgrows them. Of each bucket the least and the most stay, in their order, and the last.
 */
#ifndef ANALYZER_EXPORT_POINTS_H
#define ANALYZER_EXPORT_POINTS_H

#include <stdbool.h>
#include <stdint.h>

#define POINTS_BUCKETS 2048u /* twice what a screen shows */

struct points_point {
	uint64_t time_ns, value;
};
struct points_bucket {
	struct points_point least, most, last;
	bool any;
};
struct points {
	struct points_bucket *buckets; /* POINTS_BUCKETS; NULL before the first value */
	unsigned shift; /* a bucket is 1 << shift ns */
	uint64_t value; /* the newest */
	bool any;
};

/* Note the value from that time on; times never fall. 0 or -ENOMEM. */
int points_add(struct points *c, uint64_t time_ns, uint64_t value);
/* Call `fn` for the points in order of time. Returns what `fn` returned first other than 0. */
int points_each(
    const struct points *c, int (*fn)(void *arg, uint64_t time_ns, uint64_t value), void *arg);
void points_fini(struct points *c);

#endif
