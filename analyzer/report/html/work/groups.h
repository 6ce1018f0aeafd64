/*
 * groups.h - inside report/html/: what each thread, stage and request held in a space, and at which
 * stacks. Constant work for a change. Memory is bounded: of requests, only the largest keep their
 * stacks.
 */
#ifndef ANALYZER_REPORT_GROUPS_H
#define ANALYZER_REPORT_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "util/map.h"
#include "util/vec.h"

#define GROUPS_REQUESTS 48u /* those that held and left most keep their stacks */
#define GROUPS_CELLS 400000u /* of all groups; further stacks are summed up, see group_of */
#define GROUP_NONE UINT32_MAX

enum measure { AT_THE_MOMENT, AT_ITS_PEAK, IN_ALL, COUNTED, TEMPORARY, MEASURES };
enum group_kind { GROUP_THREAD, GROUP_STAGE, GROUP_REQUEST, GROUP_KINDS };

/* A group's numbers by kind: the thread's serial, the role, the request's number. GROUP_NONE: it
 * has no group of that kind. */
struct group_of {
	uint32_t number[GROUP_KINDS];
	uint32_t like; /* the stack that stands for this one once there are too many */
};

struct work_group {
	uint64_t live, peak, peak_ns, moment; /* bytes; moment: after groups_take() */
	uint64_t total, count; /* ever acquired */
	uint64_t first_ns, last_ns; /* of its acquisitions */
	uint32_t epoch; /* of the peak */
	uint32_t cells; /* 1 + its newest cell; 0: none */
	bool dropped; /* its stacks were not kept */
};

/* A group at a stack. At its peak means the group's. */
struct group_cell {
	uint32_t group, stack; /* group: its number */
	uint32_t next, epoch; /* next: 1 + its group's next cell, or the next free one */
	uint64_t live, measures[MEASURES];
};

/* Filled by groups.c, const for all others. Zero at first. */
struct groups {
	VEC(struct work_group) list[GROUP_KINDS]; /* by number */
	VEC(struct group_cell) cells;
	struct map by_key; /* kind, group and stack to 1 + cell */
	uint32_t spare; /* 1 + the first free cell */
	uint32_t last[GROUP_KINDS]; /* 1 + the cell of the last change */
	size_t prune_at; /* cells */
	bool taken; /* the moment is behind */
};

void groups_fini(struct groups *g);
static inline bool groups_full(const struct groups *g)
{
	return g->by_key.count >= GROUPS_CELLS;
}
/* 0 or -ENOMEM. */
int groups_acquired(struct groups *g, const struct group_of *of, uint32_t stack, uint64_t bytes,
    uint64_t count, uint64_t time_ns);
int groups_released(struct groups *g, const struct group_of *of, uint32_t stack, uint64_t bytes);
/* What was released was temporary. */
int groups_temporary(struct groups *g, const struct group_of *of, uint32_t stack, uint64_t bytes);
/* The moment has come. */
void groups_take(struct groups *g);
/* Call after the last change: settles the sums at the peaks, and keeps the stacks of the largest
 * requests only. */
int groups_end(struct groups *g);

#endif
