/*
 * levels.h - what was measured from outside of the events (RSS, cgroup, the allocators' own
 * accounts): the newest value of each level, and what they were at the moments that matter.
 */
#ifndef ANALYZER_MODEL_LEVELS_H
#define ANALYZER_MODEL_LEVELS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/heap/allocator_stats.h"

struct event;
struct model;

#define MODEL_LEVELS 160u /* keys of enum trace_level below this are kept */
/* And one that no trace has: RSS_ANON as it was next to a sample of CG_ANON, whose time it has. */
#define MODEL_LEVEL_BESIDE (MODEL_LEVELS - 1)

struct levels {
	uint64_t value[MODEL_LEVELS];
	uint64_t time_ns[MODEL_LEVELS];
	bool known[MODEL_LEVELS];
};
/* False, and *out untouched, when that key was never seen. */
bool levels_get(const struct levels *l, uint32_t key, uint64_t *out);
/* The same, 0 where it was never seen. */
uint64_t levels_value(const struct levels *l, uint32_t key);
void levels_set(struct levels *l, uint32_t key, uint64_t value, uint64_t time_ns);
/* Threads' stacks are looked at more seldom than the threads are counted: carries the size of all
 * of them on to so many threads, of `each` bytes where they are of that size (0: not known), else
 * as they were on average. */
void levels_carry_stacks(struct levels *l, uint64_t threads, uint64_t each);

/* Filled by levels.c, const for all others. */
struct measured {
	struct levels levels; /* the newest */
	struct levels at_failure; /* when the latest burst of refused requests began */
	struct levels at_peak; /* of the sample at which most lived */
	uint64_t at_peak_live;
	/* What lived when the newest RSS among these was read: to the byte, where the timeline has
	 * what lived at the ends of a period. */
	struct live_at_rss {
		uint64_t time_ns, live_bytes, shared_bytes;
	} at_rss;
	/* Anonymous memory that was resident before anything was acquired: of a forked process, the
	 * parent's; as first told. */
	bool inherited_known;
	uint64_t inherited_bytes;
	uint64_t peak_rss;
	uint64_t peak_vsize; /* the largest that was told */
	struct allocator_stats malloc;
	struct allocator_stats arenas; /* of the interpreter's allocator */
};

/* An event of the host with levels: measured_sample() one that only samples, measured_note() any
 * other. Before its own effect on what lives. */
void measured_sample(struct model *m, const struct event *e);
void measured_note(struct model *m, const struct event *e);
/* A burst of refused requests begins. */
void measured_freeze(struct measured *s);
/* The burst that began at `since_ns` goes on: what it tells first. */
void measured_freeze_more(struct measured *s, const struct event *e, uint64_t since_ns);

#endif
