/*
 * record.h - the events of one process in memory, grouped into units that can be left out. The
 * events of a unit belong together: acquisition and release of a block, one of its reallocs, a
 * mapping and its unmapping, the marks of a request, one measurement.
 */
#ifndef ANALYZER_REDUCE_RECORD_H
#define ANALYZER_REDUCE_RECORD_H

#include "util/map.h"
#include "util/vec.h"
#include "verdict/result.h"

/* The kind of memory that a unit's bytes are; measured levels are lowered by kind. Spaces other
 * than the host's follow, by id. */
enum record_class {
	RECORD_HEAP, /* blocks small enough to share malloc's larger pieces */
	RECORD_LARGE, /* blocks that have a mapping of their own */
	RECORD_ARENA, /* mappings of the interpreter for small objects */
	RECORD_MAPPING, /* anonymous memory */
	RECORD_ADDRESS, /* address space alone: reserved, files, stacks */
	RECORD_SPACES,
};
#define RECORD_SPACES_MAX 32u
#define RECORD_CLASSES (RECORD_SPACES + RECORD_SPACES_MAX)
#define RECORD_LARGE_BYTES (128u << 10) /* glibc's M_MMAP_THRESHOLD, where it starts */

enum record_unit_kind {
	UNIT_BLOCK, /* of the host, including mappings */
	UNIT_SPACE_BLOCK,
	UNIT_STEP, /* a realloc; without it the block keeps its old size */
	UNIT_MARK,
	UNIT_LEVEL, /* a measurement that is not part of a failure */
	UNIT_FAILURE, /* a refusal before the last one */
	UNIT_OTHER,
};

struct record_unit {
	uint8_t kind; /* enum record_unit_kind */
	bool leaves; /* may be left out */
	uint32_t stack; /* of its last acquisition */
	uint32_t first; /* index of its first event */
	uint32_t events;
	int64_t held; /* bytes, at the moment */
	uint64_t request; /* the request that acquired it, 0: none */
	uint32_t same; /* the unit that it was joined to, or itself */
	uint32_t inside; /* for a block of PyTorch's: the unit of its segment; 0: none */
	uint32_t chain; /* for a step: the unit of its block; 0: none */
	bool holds; /* it holds blocks of PyTorch's, and is left out with the last of them */
};

/* Return whether an event of that kind (enum event_kind) is of a block of malloc's. */
static inline bool record_is_block(unsigned kind)
{
	return kind == EV_ALLOC || kind == EV_FREE || kind == EV_UNFREE;
}

struct record_event {
	uint64_t time_ns, address, size;
	uint32_t thread, task, stack;
	uint32_t unit;
	uint32_t
	    partner; /* FREE, UNFREE: event of the ALLOC; ALLOC: of the one that it moves, plus 1 */
	uint32_t rich; /* index of the complete event, plus 1; 0: these fields are complete */
	uint8_t kind, api, flags;
	uint8_t class; /* enum record_class: the kind of memory that changes, */
	int64_t bytes; /* and by how much */
};

#define RECORD_INFOS 2u

struct record_outside {
	struct event e;
	uint64_t time_ns; /* in the process' clock */
	uint32_t unit;
};

struct record {
	struct feed feed; /* for words and facts */
	VEC(struct record_event) events;
	VEC(struct event) rich;
	VEC(struct record_unit) units; /* the first one always stays */
	VEC(struct record_outside) outside; /* the supervisor's events, about this process or all */
	struct arena arena; /* levels */
	uint32_t moment; /* the verdict's moment is before this event */
	bool refused; /* the event at the moment is the refusal */
	uint64_t requested, room; /* bytes: the request, and left of the limit; 0: unknown */
	bool centred; /* the limit lies midway between the need and the refused request */
	struct feed supervisor;
	bool supervised;
	struct record_info {
		char key[16], value[24];
	} infos[RECORD_INFOS]; /* replace those of the feed */
	uint32_t info_count;
	uint64_t next_callsite; /* next address for moved blocks (view.c); 0: none was moved */
};

/* Load the verdict's process. `set` is borrowed. 0; negative with err. Call record_fini() after
 * both. */
int record_load(const struct trace_set *set, const struct verdict_result *verdict,
    struct record *out, struct err *err);
void record_fini(struct record *r);

/* Return the value of an INFO: the record's own, else the feed's. */
const char *record_info(const struct record *r, const char *key);

#endif
