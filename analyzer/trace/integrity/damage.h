/*
 * damage.h - collects all damage of one trace file. Each reader reports what is wrong with its
 * part; what follows from the list of all chunks is found here. Bounded memory. An ordinary end of
 * the process, by SIGKILL too, is no damage.
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

#define DAMAGE_PLACES 256u /* listed; further ones are counted */
#define DAMAGE_LATEST UINT64_MAX /* ticks: to the end of the trace */

/* A damaged place. A field of 0 is not known. bytes: missing or changed ones. */
struct damage_where {
	uint64_t offset, bytes;
	uint32_t thread, sequence;
	uint64_t from, to; /* ticks */
};
struct damage_entry {
	uint32_t kind; /* enum trace_damage_kind */
	struct damage_where where;
};

/* A chunk of the file. */
struct damage_chunk {
	uint64_t offset, ticks;
	uint32_t bytes, thread, sequence;
	uint8_t type;
};
/* A range of the file without a chunk. */
struct damage_gap {
	uint64_t from, to; /* offsets */
	bool foreign; /* holds other bytes than zeros: more than a claimed, unwritten chunk */
};

struct damage {
	VEC(struct damage_entry) list;
	uint64_t more, bytes, lost; /* lost: of the bytes, the missing ones */
	uint32_t kinds;

	/* gathered while the chunks are listed */
	VEC(struct damage_chunk) chunks;
	VEC(struct damage_gap) gaps;
	struct map identities;

	VEC(struct trace_damage_place) places; /* the published list */
};

void damage_fini(struct damage *d);
/* Forget all damage. */
void damage_clear(struct damage *d);
void damage_note(struct damage *d, unsigned kind, const struct damage_where *where);

/* Add the next chunk, or the next range without one, in the file's order. `identity`: a hash of
 * fields that no other chunk shares. 0; 1: a copy of an earlier chunk; -ENOMEM. */
int damage_chunk(struct damage *d, const struct damage_chunk *chunk, uint64_t identity);
int damage_gap(struct damage *d, uint64_t from, uint64_t to, bool foreign);

struct damage_file {
	uint64_t size; /* of the file */
	uint64_t claimed; /* bytes claimed for chunks, by the header */
	uint64_t chunk_bytes; /* sum of all chunks, by the header; 0: not recorded */
	uint64_t until; /* ticks: older chunks may have been replaced by a checkpoint; 0: none */
	bool ended; /* the header says how the process ended */
};
/* Call after the last chunk: reports chunks that are missing. */
void damage_chunks_end(struct damage *d, const struct damage_file *file);

/* Fill *out. `recorded`: bytes of all events and definitions found; `undefined`: the share of
 * stacks that nothing defines. out->places is valid until the next call. */
void damage_publish(struct damage *d, struct clock *clock, uint64_t last_ns, uint64_t recorded,
    double undefined, struct trace_damage *out);

#endif
