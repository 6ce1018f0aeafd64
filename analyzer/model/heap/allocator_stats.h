/*
 * allocator_stats.h - allocators' own statistics during the run: malloc's, with the live bytes at
 * each reading (the difference is what malloc holds beside live blocks), and those of the
 * interpreter's allocator for small objects. A bounded number of readings, thinned evenly.
 */
#ifndef ANALYZER_MODEL_ALLOCATOR_STATS_H
#define ANALYZER_MODEL_ALLOCATOR_STATS_H

#include <stdbool.h>
#include <stdint.h>

struct event;

struct allocator_reading {
	uint64_t time_ns;
	uint64_t arena, mmap; /* bytes held for blocks; bytes of blocks with their own mapping */
	uint64_t free; /* part of arena; only if split */
	bool split;
	uint64_t live_bytes, live_count; /* blocks of malloc's family, by the events */
	double live_variance; /* of live_bytes, if they are an estimate */
	uint64_t acquired; /* bytes acquired by the process until then */
};

#define ALLOCATOR_READINGS 64u
struct allocator_stats {
	struct allocator_reading
	    at[ALLOCATOR_READINGS]; /* by time; the last is always the newest */
	uint32_t count;
	uint64_t seen, stride; /* each stride-th reading is kept */
};

/* Add the reading of an event's levels, if it has one. `now` has the live bytes. */
void allocator_stats_note(
    struct allocator_stats *a, const struct event *e, const struct allocator_reading *now);
/* The same for the interpreter's allocator: its arenas, and their unused part. */
void allocator_stats_note_arenas(struct allocator_stats *a, const struct event *e);
/* Return the newest reading at or before that time; NULL: none. */
const struct allocator_reading *allocator_stats_at(
    const struct allocator_stats *a, uint64_t time_ns);

/* Return the bytes held in all, and the bytes held beside live blocks (0 when the statistics are
 * below the live bytes). */
uint64_t allocator_stats_held(const struct allocator_reading *answer);
uint64_t allocator_stats_beside(const struct allocator_reading *answer);

#endif
