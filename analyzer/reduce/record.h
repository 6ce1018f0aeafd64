/*
 * record.h - one process' events in memory, and what can be left out of them: units. A unit is all
 * that stands or falls together: a block's acquisition and its release, one of its reallocs, a
 * mapping with what unmaps it, a request's marks, one measurement.
 */
#ifndef ANALYZER_REDUCE_RECORD_H
#define ANALYZER_REDUCE_RECORD_H

#include "util/map.h"
#include "util/vec.h"
#include "verdict/result.h"

/* What a unit's bytes are in, for whoever takes them out of the measured levels; a space beside the
 * host's follows with its id. */
enum record_class {
	RECORD_HEAP, /* blocks that malloc cuts out of larger pieces, by their size */
	RECORD_LARGE, /* blocks that have a mapping of their own */
	RECORD_ARENA, /* mappings: the interpreter's, for small objects */
	RECORD_MAPPING, /* anonymous memory */
	RECORD_ADDRESS, /* address space alone: reserved, files, stacks */
	RECORD_SPACES,
};
#define RECORD_SPACES_MAX 32u
#define RECORD_CLASSES (RECORD_SPACES + RECORD_SPACES_MAX)
#define RECORD_LARGE_BYTES (128u << 10) /* glibc's M_MMAP_THRESHOLD, where it starts */

enum record_unit_kind {
	UNIT_BLOCK, /* of the host, mappings too */
	UNIT_SPACE_BLOCK,
	UNIT_STEP, /* a realloc: without it the block stays as it was before */
	UNIT_MARK,
	UNIT_LEVEL, /* a measurement that is not part of a failure */
	UNIT_FAILURE, /* a refusal that was not the last one */
	UNIT_OTHER,
};

struct record_unit {
	uint8_t kind; /* enum record_unit_kind */
	bool leaves; /* may be left out */
	uint32_t stack; /* where it was acquired last */
	uint32_t first; /* event */
	uint32_t events;
	int64_t held; /* bytes, at the moment */
	uint64_t request; /* that it was acquired for, 0: none */
	uint32_t same; /* the unit that it is part of, or itself */
	uint32_t inside; /* of PyTorch's blocks: the segment's unit; 0: none */
	uint32_t chain; /* of steps: the block's unit, which is before them; 0: none */
	bool holds; /* blocks of PyTorch's were inside: it goes with the last of them */
};

struct record_event {
	uint64_t time_ns, address, size;
	uint32_t thread, task, stack;
	uint32_t unit;
	uint32_t
	    partner; /* FREE, UNFREE: event of the ALLOC; ALLOC: of the one that it moves, plus 1 */
	uint32_t rich; /* the event as it was read, plus 1; 0: nothing more is to be said */
	uint8_t kind, api, flags;
	uint8_t class; /* enum record_class: where it changes what lives, */
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
	VEC(struct record_unit) units; /* the first is what always stays */
	VEC(struct record_outside) outside; /* the supervisor's, of this process or of all */
	struct arena arena; /* levels */
	uint32_t moment; /* the event before which the verdict's moment is */
	bool refused; /* that event is the refusal */
	uint64_t requested, room; /* bytes: by it, and left under the limit then; 0: not known */
	bool centred; /* the limit is put between what is needed and what was refused */
	struct feed supervisor;
	bool supervised;
	struct record_info {
		char key[16], value[24];
	} infos[RECORD_INFOS]; /* in place of what the feed says */
	uint32_t info_count;
	uint64_t next_callsite; /* for blocks that lie elsewhere than in the trace (view.c); 0: none
				   do */
};

/* Of the verdict's subject. `set` is borrowed. 0, or negative with err; record_fini() either way.
 */
int record_load(const struct trace_set *set, const struct verdict_result *verdict,
    struct record *out, struct err *err);
void record_fini(struct record *r);

/* As feed.info, with the record's own. */
const char *record_info(const struct record *r, const char *key);

#endif
