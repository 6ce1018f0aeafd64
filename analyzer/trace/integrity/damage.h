/*
 * damage.h - the one account of what is missing in a trace file, or is not what was written: who
 * reads a part of it notes what is wrong there; what follows from the list of all chunks is found
 * here. Of bounded size. What an ordinary end leaves, by SIGKILL too, is no damage.
 */
#ifndef ANALYZER_TRACE_DAMAGE_H
#define ANALYZER_TRACE_DAMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/clock.h"
#include "util/map.h"
#include "util/vec.h"

struct trace_damage;
struct trace_damage_place;

#define DAMAGE_PLACES 256u /* that are kept; the rest are counted */
#define DAMAGE_LATEST UINT64_MAX /* ticks: until the end */

/* What is known of a place; zero is not known. Bytes: that are missing in it or not what was
 * written. */
struct damage_where {
	uint64_t offset, bytes;
	uint32_t thread, sequence;
	uint64_t from, to; /* ticks */
};
struct damage_entry {
	uint32_t kind; /* enum trace_damage_kind */
	struct damage_where where;
};

/* A chunk that was found. */
struct damage_chunk {
	uint64_t offset, ticks;
	uint32_t bytes, thread, sequence;
	uint8_t type;
};
/* Where there was none. */
struct damage_gap {
	uint64_t from, to; /* offsets */
	bool foreign; /* something else is there: no chunk that was only claimed looks so */
};

struct damage {
	VEC(struct damage_entry) list;
	uint64_t more, bytes, lost; /* lost: of the bytes, those that are not there */
	uint32_t kinds;

	/* From the list of chunks, as it is read. */
	VEC(struct damage_chunk) chunks;
	VEC(struct damage_gap) gaps;
	struct map identities;

	VEC(struct trace_damage_place) places; /* what is published */
};

void damage_fini(struct damage *d);
/* Nothing is known any more. */
void damage_clear(struct damage *d);
void damage_note(struct damage *d, unsigned kind, const struct damage_where *where);

/* The chunks of a file in their order. A chunk: 0; 1: it is in the file already; -ENOMEM. Its
 * identity is of what no other chunk has. */
int damage_chunk(struct damage *d, const struct damage_chunk *chunk, uint64_t identity);
int damage_gap(struct damage *d, uint64_t from, uint64_t to, bool foreign);

struct damage_file {
	uint64_t size; /* of the file */
	uint64_t claimed; /* bytes of it that were claimed for chunks */
	uint64_t chunk_bytes; /* of the chunks that there were; 0: it does not say */
	uint64_t until; /* ticks: what began until then may have been replaced; 0: nothing was */
	bool ended; /* it says how the process ended */
};
/* After all of them: notes what is missing. */
void damage_chunks_end(struct damage *d, const struct damage_file *file);

/* `recorded`: bytes of the events and definitions that were found; `undefined`: the share of the
 * stacks that nothing defines. The places are valid until the next call. */
void damage_publish(struct damage *d, struct clock *clock, uint64_t last_ns, uint64_t recorded,
    double undefined, struct trace_damage *out);

#endif
