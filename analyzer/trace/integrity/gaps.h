/*
 * gaps.h - stretches of a thread's chunks in which nothing but blocks of malloc's kin comes and
 * goes, as they were found when the chunks were decoded: a later pass that wants only what lies
 * between goes past them. Of bounded memory; what is not known is decoded.
 */
#ifndef ANALYZER_TRACE_GAPS_H
#define ANALYZER_TRACE_GAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/vec.h"

#define GAP_MIN 16u /* bytes; it is no use to go past less */
#define GAPS_ROOM (1u << 18) /* for all threads of a trace: 6 MiB */

struct gap {
	uint64_t ticks; /* of the last event in it */
	uint32_t chunk; /* of the thread's */
	uint32_t from, to; /* bytes from the beginning of the chunk's body */
};

struct gaps {
	VEC(struct gap) list;
	size_t known; /* of them, those of whole chunks */
	uint32_t chunks; /* of so many chunks they are known */
	size_t at; /* where gaps_find() goes on */
	uint32_t from; /* of the one that goes on */
	bool noting, inside, full;
	uint32_t *room; /* for so many more, of all threads' */
};

void gaps_fini(struct gaps *g);
/* Back to the first chunk. */
void gaps_rewind(struct gaps *g);
/* That chunk is decoded from here on; each comes after the one before it. */
void gaps_begin(struct gaps *g, uint32_t chunk);
/* At this byte a gap begins, if it did not before. */
static inline void gaps_enter(struct gaps *g, uint32_t at)
{
	if (!g->inside)
		g->from = at;
	g->inside = true;
}
/* Something else follows, or nothing does. `ticks`: of the last event. */
void gaps_leave(struct gaps *g, uint32_t chunk, uint32_t at, uint64_t ticks);
/* The chunk was decoded. `sound`: it can be gone through in the same way again. */
void gaps_end(struct gaps *g, bool sound);
/* The gap that begins exactly there; NULL: none is known. Asked for in rising order. */
const struct gap *gaps_find(struct gaps *g, uint32_t chunk, uint32_t at);

#endif
