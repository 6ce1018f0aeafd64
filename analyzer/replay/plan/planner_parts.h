/*
 * planner_parts.h - what planner.c and planner_maps.c share: the state of a pass.
 */
#ifndef ANALYZER_REPLAY_PLANNER_PARTS_H
#define ANALYZER_REPLAY_PLANNER_PARTS_H

#include "replay/plan/plan_file.h"
#include "replay/plan/planner.h"
#include "util/map.h"
#include "util/ranges.h"
#include "util/vec.h"

/* The releasing half of a realloc, which is one operation. */
struct moving {
	bool waits;
	uint32_t slot;
	uint64_t address, size;
	uint32_t class;
};

/* A block: where its pointer is, and how it counts. */
struct held {
	uint32_t slot;
	uint32_t class;
};

/* A mapping: all pieces that are left of it share a slot. */
struct region {
	uint64_t start, left;
	uint32_t class;
};

/* What is not small, and may still be written to for the first time. */
struct young {
	uint32_t slot;
	uint64_t born_ns, size;
};

struct planner {
	struct feed feed;
	struct plan_file file;
	const struct recorded *recorded;
	const struct plan_last *last;
	struct plan_facts *facts;

	struct map threads; /* serial to 1 + lane */
	VEC(struct moving) moving; /* by lane */
	uint32_t newest; /* lane of the latest event */
	struct map blocks; /* address to struct held */
	struct ranges mappings; /* serial: the region */
	VEC(struct region) regions; /* by slot */
	bool cut_any; /* the latest unmapping took something, which was: */
	enum plan_access cut_access;
	int error; /* in a callback */

	uint64_t event, live[PLAN_CLASSES], all;
	uint64_t now_ns;
	VEC(struct young) young;
	uint64_t written_ns; /* then those that are forgotten were done */
	VEC(uint64_t) born; /* by slot, ns; of what is not small, UINT64_MAX: nothing lives */
	uint64_t sampled_live, sampled_ns, grain; /* grain 0: only where levels were measured */
	uint64_t peak_event; /* UINT64_MAX: not known yet */
	uint32_t due; /* of the recorded samples */
	bool last_seen;

	/* plan_find()'s. */
	bool finding, found;
	uint32_t find_thread;
	uint64_t find_n;
};

/* What lives becomes more, or less. */
void planner_acquired(struct planner *p, uint32_t class, uint64_t size);
void planner_released(struct planner *p, uint32_t class, uint64_t size);
/* So many bytes of the slot's are to be written to yet; none any more. */
void planner_is_young(struct planner *p, uint32_t slot, uint64_t size);
void planner_is_gone(struct planner *p, uint32_t slot);

/* planner_maps.c: each 0 or -ENOMEM, or a negative errno of writing. */
int planner_on_map(struct planner *p, const struct event *e, uint32_t lane);
int planner_on_unmap(struct planner *p, const struct event *e);
int planner_on_advise(struct planner *p, const struct event *e);

#endif
