/*
 * timeline.h - how much lived over the run, in at most 128 periods of equal length, which doubles
 * when the run outgrows them. For flatness, steady states and the chart; stacks keep their own
 * series.
 */
#ifndef ANALYZER_MODEL_TIMELINE_H
#define ANALYZER_MODEL_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

#define TIMELINE_PERIODS 128u

/* Parts of what is mapped: shared memory; files, mapped privately and shared. */
enum came { CAME_SHARED, CAME_FILE, CAME_SHARED_FILE, CAME_KINDS };

struct period {
	uint64_t least, most, last; /* live bytes in it */
	uint64_t last_ns; /* when `last` came to be */
	uint64_t acquired, released; /* bytes */
	uint64_t events; /* 0: nothing happened, the others are carried over */
	uint64_t rss; /* largest seen, 0: not sampled */
	int64_t came[CAME_KINDS]; /* bytes, less those that went */
};

struct timeline {
	uint32_t used;
	uint32_t shift; /* a period is 1 << shift ns */
	uint64_t end_ns; /* of the present period */
	struct period periods[TIMELINE_PERIODS];
};

void timeline_init(struct timeline *t);
void timeline_advance(struct timeline *t, uint64_t time_ns, uint64_t live);

/* The present period for an event at time_ns; `live` is what lived before it. */
static inline struct period *timeline_at(struct timeline *t, uint64_t time_ns, uint64_t live)
{
	if (time_ns >= t->end_ns)
		timeline_advance(t, time_ns, live);
	return &t->periods[t->used - 1];
}

/* RSS as it was seen, while `live` lived. */
void timeline_rss(struct timeline *t, uint64_t time_ns, uint64_t live, uint64_t rss);
/* Of what is mapped, by so much more. */
void timeline_map(
    struct timeline *t, uint64_t time_ns, uint64_t live, enum came what, int64_t change);
/* `size` bytes were acquired or released, and then `live` lived. */
void timeline_acquire(
    struct timeline *t, uint64_t time_ns, uint64_t live_before, uint64_t live, uint64_t size);
void timeline_release(
    struct timeline *t, uint64_t time_ns, uint64_t live_before, uint64_t live, uint64_t size);

/* A stretch of time of which only sums are known; they are spread over it evenly. Its end lies in
 * the present period. */
struct timeline_replaced {
	uint64_t from_ns, until_ns;
	uint64_t live_from, live_until, most; /* bytes */
	uint64_t acquired, released; /* bytes that no event told of */
	uint64_t events;
};
void timeline_replaced(struct timeline *t, const struct timeline_replaced *r);

/* About how much lived then: interpolated between the ends of two periods. */
uint64_t timeline_live(const struct timeline *t, uint64_t time_ns);

/* The same for one part of what is mapped; files are not part of what lived. */
uint64_t timeline_came(const struct timeline *t, uint64_t time_ns, enum came what);

/* About how many bytes were acquired between two moments; 0 when the second is not later. */
uint64_t timeline_acquired(const struct timeline *t, uint64_t from_ns, uint64_t until_ns);

/* The part of the time between two moments in whose periods anything happened: a process that is
 * stopped or waits does not age. 0 when the second is not later. */
uint64_t timeline_active(const struct timeline *t, uint64_t from_ns, uint64_t until_ns);

static inline uint64_t timeline_period_ns(const struct timeline *t)
{
	return 1ull << t->shift;
}

#endif
