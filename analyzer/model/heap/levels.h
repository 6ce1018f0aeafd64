/*
 * levels.h - values measured from outside the events (RSS, cgroup, allocators' own statistics): the
 * newest of each level, and those at the moments that matter.
 */
#ifndef ANALYZER_MODEL_LEVELS_H
#define ANALYZER_MODEL_LEVELS_H

#include <stdbool.h>
#include <stdint.h>

struct event;
struct model;

#define MODEL_LEVELS 160u /* keys of enum trace_level below this are kept */
/* A key that no trace has: RSS_ANON as sampled next to CG_ANON, with that sample's time. */
#define MODEL_LEVEL_BESIDE (MODEL_LEVELS - 1)

struct levels {
	uint64_t value[MODEL_LEVELS];
	uint64_t time_ns[MODEL_LEVELS];
	bool known[MODEL_LEVELS];
};
/* Get a level. False, and *out untouched, if the key was never seen. */
bool levels_get(const struct levels *l, uint32_t key, uint64_t *out);
/* The same; 0 if it was never seen. */
uint64_t levels_value(const struct levels *l, uint32_t key);
void levels_set(struct levels *l, uint32_t key, uint64_t value, uint64_t time_ns);
/* The most that glibc keeps of the stacks of threads that ended and were joined, bytes. */
#define STACKS_KEPT (40u << 20)

/* Carry the size of all threads' stacks on to `threads` of them, since stacks are sampled less
 * often than threads are counted. Stacks are `each` bytes, if they have that size (0: unknown),
 * else their average. More than glibc keeps of ended threads is of those that nobody joined, and
 * stays. */
void levels_carry_stacks(struct levels *l, uint64_t threads, uint64_t each);

/* Allocators' own statistics during the run: malloc's, with the live bytes at each reading (the
 * difference is what malloc holds beside live blocks), and those of the interpreter's allocator for
 * small objects. A bounded number of readings, thinned evenly. */
struct allocator_reading {
	uint64_t time_ns;
	uint64_t arena, mmap; /* bytes held for blocks; bytes of blocks with their own mapping */
	uint64_t free; /* part of arena; only if split */
	bool split;
	uint64_t live_bytes, live_count; /* blocks of malloc's family, by the events */
	double live_variance; /* of live_bytes, if they are an estimate */
	uint64_t before; /* bytes of blocks from before an attach, not freed yet */
	uint64_t acquired; /* bytes acquired by the process until then */
};

#define ALLOCATOR_READINGS 64u
struct allocator_stats {
	struct allocator_reading
	    at[ALLOCATOR_READINGS]; /* by time; the last is always the newest */
	uint32_t count;
	uint64_t seen, stride; /* each stride-th reading is kept */
};

/* The address space during the run, and the live bytes at each reading: what else is mapped, as the
 * stacks of threads, is the difference. Thinned in the same way. */
struct address_reading {
	uint64_t time_ns, bytes, live_bytes;
};

#define ADDRESS_READINGS 64u
struct address_space {
	struct address_reading at[ADDRESS_READINGS]; /* by time; the last is always the newest */
	uint32_t count;
	uint64_t seen, stride;
};

/* Return the newest reading at or before that time; NULL: none. */
const struct allocator_reading *allocator_stats_at(
    const struct allocator_stats *a, uint64_t time_ns);

/* Return the bytes held in all, and the bytes held beside live blocks (0 when the statistics are
 * below these). Blocks from before an attach live, too. */
uint64_t allocator_stats_held(const struct allocator_reading *reading);
uint64_t allocator_stats_beside(const struct allocator_reading *reading);

/* Filled by levels.c, const for all others. */
struct measured {
	struct levels levels; /* the newest */
	struct levels at_failure; /* at the begin of the latest burst of refused requests */
	struct levels at_peak; /* in the sample at the live bytes' peak */
	uint64_t at_peak_live;
	/* Live bytes at the newest RSS sample, to the byte; the timeline is coarser. */
	struct live_at_rss {
		uint64_t time_ns, live_bytes, shared_bytes;
	} at_rss;
	/* Anonymous memory that was resident before any acquisition, as first reported: in a forked
	 * process, the parent's. */
	bool inherited_known;
	uint64_t inherited_bytes;
	uint64_t peak_rss;
	uint64_t peak_vsize; /* the largest reported */
	struct allocator_stats malloc;
	struct allocator_stats arenas; /* of the interpreter's allocator */
	struct address_space address;
};

/* Apply a host's event with levels: measured_sample() for one that only samples, measured_note()
 * for others. Call it before the event changes the live bytes. */
void measured_sample(struct model *m, const struct event *e);
void measured_note(struct model *m, const struct event *e);
/* Add levels that were not known yet to those of the burst that began at `since_ns`. */
void measured_freeze_more(struct measured *s, const struct event *e, uint64_t since_ns);

#endif
