/*
 * timeline.h - live bytes over the run, in at most 128 periods of equal length, which doubles when
 * the run outgrows them. For flatness, steady states and the chart; stacks keep their own series.
 */
#ifndef ANALYZER_MODEL_TIMELINE_H
#define ANALYZER_MODEL_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#define TIMELINE_PERIODS 128u

/* Mapped bytes: of shared memory; of files, mapped privately and shared. */
enum came { CAME_SHARED, CAME_FILE, CAME_SHARED_FILE, CAME_KINDS };

struct period {
	uint64_t least, most, last; /* live bytes in it */
	uint64_t last_ns; /* time of `last` */
	uint64_t acquired, released; /* bytes */
	uint64_t events; /* 0: nothing happened, and the values are carried over */
	uint64_t rss; /* largest sampled; 0: not sampled */
	int64_t came[CAME_KINDS]; /* mapped bytes, less unmapped ones */
};

struct timeline {
	uint32_t used;
	uint32_t shift; /* a period is 1 << shift ns */
	struct period periods[TIMELINE_PERIODS];
};

void timeline_init(struct timeline *t);

/* Return the current period for an event at time_ns; `live` is the sum before it. */
struct period *timeline_at(struct timeline *t, uint64_t time_ns, uint64_t live);

/* Note an RSS sample and the live bytes at that time. */
void timeline_rss(struct timeline *t, uint64_t time_ns, uint64_t live, uint64_t rss);
/* Add mapped bytes of that kind. */
void timeline_map(
    struct timeline *t, uint64_t time_ns, uint64_t live, enum came what, int64_t change);
/* Note that `size` bytes were acquired or released, after which `live` bytes lived. */
void timeline_acquire(
    struct timeline *t, uint64_t time_ns, uint64_t live_before, uint64_t live, uint64_t size);
void timeline_release(
    struct timeline *t, uint64_t time_ns, uint64_t live_before, uint64_t live, uint64_t size);

/* A stretch with known sums only, spread over it evenly. It ends in the current period. */
struct timeline_replaced {
	uint64_t from_ns, until_ns;
	uint64_t live_from, live_until, most; /* bytes */
	uint64_t acquired, released; /* bytes without an event */
	uint64_t events;
};
void timeline_replaced(struct timeline *t, const struct timeline_replaced *r);

/* Return about how many bytes lived then, interpolated between the ends of two periods. */
uint64_t timeline_live(const struct timeline *t, uint64_t time_ns);
/* Set the two moments between whose values that is interpolated, and return the later one's weight,
 * 0 to 1. Whoever takes another sum off must interpolate it alike. */
double timeline_between(
    const struct timeline *t, uint64_t time_ns, uint64_t *from_ns, uint64_t *until_ns);

/* The same for one kind of mapped bytes; files are not part of the live bytes. */
uint64_t timeline_came(const struct timeline *t, uint64_t time_ns, enum came what);

/* Return about how many bytes were acquired between two moments; 0 when the second is not later. */
uint64_t timeline_acquired(const struct timeline *t, uint64_t from_ns, uint64_t until_ns);

/* Return the time between two moments, without periods in which nothing happened: a process that is
 * stopped or waits does not age. 0 when the second is not later. */
uint64_t timeline_active(const struct timeline *t, uint64_t from_ns, uint64_t until_ns);

static inline uint64_t timeline_period_ns(const struct timeline *t)
{
	return 1ull << t->shift;
}

/* Did memory rise in one short stretch at the end, after a long steady state? Then the rise belongs
 * to one request; a rise all along belongs to every request. */
struct late_rise {
	uint64_t start_ns, steady_ns; /* its begin; length of the steady state before */
	uint64_t peak_trend_bytes; /* of the rise */
	/* During the steady state, at least the live bytes were acquired: the process worked, and
	 * did not wait to begin. */
	bool worked;
};

/* Find the rise. False: there is none. `first_ns`: the first event, before which nothing was
 * steady. `moment_ns`: the end of the rise. */
bool late_rise_find(
    const struct timeline *t, uint64_t first_ns, uint64_t moment_ns, struct late_rise *out);

#endif
