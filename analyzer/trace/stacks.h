/*
 * stacks.h - distinct stacks: a tree of frames, root first, in which equal stacks end at the same
 * node. The file's own stack ids are any numbers; the canonical ones are dense, from 1.
 */
#ifndef ANALYZER_TRACE_STACKS_H
#define ANALYZER_TRACE_STACKS_H

#include "trace/trace.h"
#include "util/map.h"
#include "util/vec.h"

#define STACK_DEPTH_MAX 65000u /* deeper definitions are refused: the recorder cuts far earlier */

/*
 * Most nodes have one child, made right after them. So nodes lie in runs, each the only child of
 * the one before it in the array or a later one of several: what is known of a node is its frame, 4
 * bytes, and the rest is known of the run.
 */
#define STACK_BRANCHES 0x80000000u
struct stack_run {
	uint32_t first; /* its nodes: from here to the first of the next run */
	uint32_t above; /* the run that the first one hangs from: its node of the depth before */
	uint32_t stack; /* that ends at its last node; 0: none, and it may still grow */
	uint16_t depth; /* of its first node */
	uint16_t level; /* runs above it */
};

/* A node, and the run that it lies in. The root, which is no frame, is node 0 in run 0. */
struct stack_at {
	uint32_t node, run;
};

struct stacks {
	VEC(struct frame) frames; /* distinct ones */
	uint32_t *frame_table; /* by hash: index into them, plus 1 */
	size_t frame_table_size;
	VEC(uint32_t) nodes; /* of each, its frame, and whether others hang from it than the next */
	VEC(struct stack_run) runs;
	VEC(uint32_t) jumps; /* of each, a run farther up: any depth is reached in few steps */
	struct stack_at *table; /* first nodes by hash of their parent and frame; 0: free */
	size_t table_size;
	struct map inner; /* nodes that are not the last of their run: the stack that ends there */
	VEC(struct stack_at) inner_ends; /* these nodes */
	VEC(uint32_t) ends; /* of each canonical stack: see stacks_end() */
	uint32_t *dense; /* the file's id to its canonical one, plus 1; 0: not defined */
	size_t dense_count, dense_limit;
	struct map sparse; /* the same of ids that are no index */
	struct frame *scratch;
	size_t scratch_count;
	uint32_t *order; /* see stacks_order(); NULL: not asked for */
	size_t order_count;
};

/* `id_limit`: no well-formed file of this size has ids above it, so that much may be indexed. */
int stacks_init(struct stacks *s, uint64_t id_limit);
void stacks_fini(struct stacks *s);

/* The number of a node's frame. */
static inline uint32_t stacks_number(const struct stacks *s, uint32_t node)
{
	return s->nodes.items[node] & ~STACK_BRANCHES;
}

static inline const struct frame *stacks_frame(const struct stacks *s, uint32_t node)
{
	return &s->frames.items[stacks_number(s, node)];
}

/* Whether a child of the node is in the table. */
static inline bool stacks_branches(const struct stacks *s, uint32_t node)
{
	return s->nodes.items[node] & STACK_BRANCHES;
}

/* Behind the last node of a run. */
static inline uint32_t stacks_run_end(const struct stacks *s, uint32_t run)
{
	return run + 1 < s->runs.count ? s->runs.items[run + 1].first : (uint32_t)s->nodes.count;
}

/* The node that the first of a run hangs from, which is not the root's. */
static inline struct stack_at stacks_run_parent(const struct stacks *s, uint32_t run)
{
	uint32_t above = s->runs.items[run].above;
	const struct stack_run *of = &s->runs.items[above];

	return (struct stack_at){of->first + (s->runs.items[run].depth - 1u - of->depth), above};
}

/* Of `ends`: the run that the stack ends with, or this and an index into `inner_ends`. */
#define STACK_INNER 0x80000000u
/* Where a canonical stack ends. */
static inline struct stack_at stacks_end(const struct stacks *s, uint32_t stack)
{
	uint32_t end = s->ends.items[stack];

	return end & STACK_INNER ? s->inner_ends.items[end & ~STACK_INNER]
				 : (struct stack_at){stacks_run_end(s, end) - 1, end};
}

static inline uint32_t stacks_depth(const struct stacks *s, struct stack_at at)
{
	return s->runs.items[at.run].depth + (at.node - s->runs.items[at.run].first);
}

static inline struct stack_at stacks_parent(const struct stacks *s, struct stack_at at)
{
	const struct stack_run *run = &s->runs.items[at.run];

	return at.node > run->first ? (struct stack_at){at.node - 1, at.run}
				    : stacks_run_parent(s, at.run);
}

static inline bool stacks_same_frame(const struct frame *a, const struct frame *b)
{
	return a->address == b->address && a->module == b->module && a->kind == b->kind &&
	       a->exact == b->exact;
}

/* Its index, plus 1; 0: no node has it. */
uint32_t stacks_find_frame(const struct stacks *s, const struct frame *frame);
/* Where in the table a run is looked for first: one of `table_size` places, and then the next. */
static inline size_t stacks_place(const struct stacks *s, uint32_t parent, uint32_t frame)
{
	/* Seeded, so that nobody can choose parents and frames that collide. */
	return map_hash((uint64_t)parent << 32 | frame) & (s->table_size - 1);
}
/* Whether what is found there is it. */
static inline bool stacks_is_child(
    const struct stacks *s, struct stack_at child, struct stack_at parent, uint32_t frame)
{
	const struct stack_run *run = &s->runs.items[child.run];

	return run->above == parent.run && run->depth == stacks_depth(s, parent) + 1 &&
	       stacks_number(s, child.node) == frame;
}
/* As stacks_step(), where the frame is not that of the next node of the run. */
int stacks_branch(struct stacks *s, struct stack_at *at, const struct frame *frame);
/* Leads `at` to the node under it for this frame, made when new. 0, -ENOMEM, or 1: too deep. */
static inline int stacks_step(struct stacks *s, struct stack_at *at, const struct frame *frame)
{
	if (at->node + 1 < stacks_run_end(s, at->run) &&
	    stacks_same_frame(stacks_frame(s, at->node + 1), frame)) {
		at->node++;
		return 0;
	}
	return stacks_branch(s, at, frame);
}
/* The ancestor of a node (or itself) with that depth, which is not greater than the node's own. Not
 * after stacks_close(). */
struct stack_at stacks_ancestor(const struct stacks *s, struct stack_at at, uint32_t depth);
/* The file's id `raw` is the stack that ends there. 0, -EEXIST when it was defined before. */
int stacks_define(struct stacks *s, uint64_t raw, struct stack_at at);
/* Where the stack of the file's id ends; false: not defined. */
bool stacks_defined(const struct stacks *s, uint64_t raw, struct stack_at *at);

/* No more are defined: what only that needs is given back. */
void stacks_close(struct stacks *s);

uint32_t stacks_slow(const struct stacks *s, uint64_t raw);
/* The canonical id of the file's id, 0 when that is not defined. */
static inline uint32_t stacks_canonical(const struct stacks *s, uint64_t raw)
{
	return raw < s->dense_count ? s->dense[raw] - (s->dense[raw] != 0) : stacks_slow(s, raw);
}

size_t stacks_frames(struct stacks *s, uint32_t stack, const struct frame **frames);

/* All canonical ids but 0 in the order of the tree: each stack beside those that it shares most
 * frames with, so that who looks at all of them sees each node once. Kept. 0 or -ENOMEM. */
int stacks_order(struct stacks *s, const uint32_t **order, size_t *count);

#endif
