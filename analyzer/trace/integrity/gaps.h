/*
 * gaps.h - remembers the stretches of a thread's chunks that hold only ALLOC, FREE and UNFREE, so
 * that a later pass that leaves these out can skip them. Bounded memory; unknown stretches are
 * decoded.
 */
#ifndef ANALYZER_TRACE_GAPS_H
#define ANALYZER_TRACE_GAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/vec.h"

#define GAP_MIN 16u /* bytes; skipping less is not worth it */
#define GAPS_ROOM (1u << 18) /* for all threads of a trace: 6 MiB */

struct gap {
	uint64_t ticks; /* of the last event in it */
	uint32_t chunk; /* index among the thread's */
	uint32_t from, to; /* bytes from the beginning of the chunk's body */
};

struct gaps {
	VEC(struct gap) list;
	size_t known; /* of the list: those of completely decoded chunks */
	uint32_t chunks; /* completely decoded */
	size_t at; /* where gaps_find() continues */
	uint32_t from; /* of the open gap */
	bool noting, inside, full;
	uint32_t *room; /* gaps that may still be added, for all threads together */
};

void gaps_fini(struct gaps *g);
/* Go back to the first chunk. */
void gaps_rewind(struct gaps *g);
/* Decoding of a chunk begins. Chunks come in order. */
void gaps_begin(struct gaps *g, uint32_t chunk);
/* Open a gap at this byte of the body, unless one is open. */
static inline void gaps_enter(struct gaps *g, uint32_t at)
{
	if (!g->inside)
		g->from = at;
	g->inside = true;
}
/* Close the gap. `ticks`: of its last event. */
void gaps_leave(struct gaps *g, uint32_t chunk, uint32_t at, uint64_t ticks);
/* Decoding of the chunk ends. `sound`: without damage, so its gaps are kept. */
void gaps_end(struct gaps *g, bool sound);
/* The gap that begins at this byte; NULL: none is known. Call in rising order. */
const struct gap *gaps_find(struct gaps *g, uint32_t chunk, uint32_t at);

#endif
