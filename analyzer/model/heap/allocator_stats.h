/*
 * allocator_stats.h - accounts that an allocator gave of itself during the run: malloc's, with what
 * lived at each such moment (the difference is what it holds beside live blocks), and that of the
 * interpreter's allocator for small objects. A bounded number of readings, thinned evenly.
 */
#ifndef ANALYZER_MODEL_ALLOCATOR_STATS_H
#define ANALYZER_MODEL_ALLOCATOR_STATS_H

#include <stdbool.h>
#include <stdint.h>

struct event;

struct allocator_reading {
	uint64_t time_ns;
	uint64_t arena, mmap; /* bytes held for blocks, and by blocks with a mapping of their own */
	uint64_t free; /* of arena; only where split */
	bool split;
	uint64_t live_bytes, live_count; /* blocks of malloc's kin, by the events */
	double live_variance; /* of live_bytes, as far as that is an estimate */
	uint64_t acquired; /* bytes, by the process until then */
};

#define ALLOCATOR_READINGS 64u
struct allocator_stats {
	struct allocator_reading
	    at[ALLOCATOR_READINGS]; /* by time; the last one is always the newest */
	uint32_t count;
	uint64_t seen, stride; /* each stride-th of those seen is kept */
};

/* Add the reading of an event's levels, if it has one. `now` has what lives. */
void allocator_stats_note(
    struct allocator_stats *a, const struct event *e, const struct allocator_reading *now);
/* The same of the interpreter's account: its arenas, and what of them is not in use. */
void allocator_stats_note_arenas(struct allocator_stats *a, const struct event *e);
/* The newest reading that is not later than that; NULL: there is none. */
const struct allocator_reading *allocator_stats_at(
    const struct allocator_stats *a, uint64_t time_ns);

/* Bytes held in all, and bytes held beside live blocks (0 when the account says less than what
 * lived). */
uint64_t allocator_stats_held(const struct allocator_reading *answer);
uint64_t allocator_stats_beside(const struct allocator_reading *answer);

#endif
