/*
 * maps.h - mappings: which there are, which limit charges them, and the unmapping that may be taken
 * back.
 */
#ifndef ANALYZER_MODEL_MAPS_H
#define ANALYZER_MODEL_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/ranges.h"
#include "util/vec.h"

struct event;
struct model;

/* Filled by maps.c, const for all others. */
struct maps {
	uint64_t bytes, count; /* the program's own anonymous mappings, and shared memory below */
	uint64_t charged_shared_bytes; /* part of bytes: shared memory, if it is charged */
	/* Known from the first shared mapping on: all limits charge it, except RLIMIT_DATA. */
	bool shared_asked, shared_counts;
	uint64_t allocator_bytes; /* mapped by malloc's owner for itself */
	/* Virtual bytes of recorded mappings that are not in `bytes`. */
	uint64_t stack_bytes, shared_bytes, file_bytes;
	uint64_t reserved_bytes; /* part of them without access */
	uint64_t break_bytes; /* moved by the program's own brk */
	struct ranges ranges;
	VEC(struct range) undo; /* pieces of the latest unmapping, for UNUNMAP */
	uint64_t undo_address;
	int cut_error;
	uint64_t cut_ns;
};

void maps_init(struct maps *maps);
void maps_fini(struct maps *maps);

/* EV_MAP, EV_UNMAP, EV_UNUNMAP: 0 or -ENOMEM. EV_BRK. */
int maps_on_map(struct model *m, const struct event *e);
int maps_on_unmap(struct model *m, const struct event *e);
int maps_on_ununmap(struct model *m, const struct event *e);
void maps_on_brk(struct maps *maps, const struct event *e);

#endif
