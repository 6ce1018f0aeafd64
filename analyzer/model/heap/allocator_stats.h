/*
 * allocator_stats.h - what an allocator said of itself over the run: malloc, and what lived at each
 * such moment (the two together tell what it holds beside live blocks); the interpreter's for small
 * objects. A bounded number of answers, thinned evenly.
 */
#ifndef ANALYZER_MODEL_ANSWERS_H
#define ANALYZER_MODEL_ANSWERS_H

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

/* Takes the answer from an event's levels, if it has one; `now` has what lives. */
void allocator_stats_note(
    struct allocator_stats *a, const struct event *e, const struct allocator_reading *now);
/* The same of the interpreter's account: its arenas, and what of them is not in use. */
void allocator_stats_note_arenas(struct allocator_stats *a, const struct event *e);
/* The newest that is not later than that; NULL: there is none. */
const struct allocator_reading *allocator_stats_at(
    const struct allocator_stats *a, uint64_t time_ns);

/* What it held in all, and what of it was in no live block: 0 when it says less than what lived. */
uint64_t allocator_stats_held(const struct allocator_reading *answer);
uint64_t allocator_stats_beside(const struct allocator_reading *answer);

#endif
