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

struct stack_node {
	uint32_t parent; /* 0: the root, which is no frame */
	uint32_t jump; /* an ancestor farther up: any depth is reached in few steps */
	uint32_t frame, stack;
	uint16_t depth;
};

struct stacks {
	VEC(struct frame) frames; /* distinct ones */
	uint32_t *frame_table; /* by hash: index into them, plus 1 */
	size_t frame_table_size;
	struct stack_node *nodes;
	size_t count, capacity;
	/* By hash: nodes, but for those that came right after their parent. These are most, and
	 * are found beside it. */
	uint32_t *table;
	size_t table_size, table_used;
	uint32_t *ends; /* ends[id]: the node of a canonical stack */
	size_t end_count, end_capacity;
	/* The file's id to its canonical one and to its node; 0: not defined. Small ids by index.
	 */
	struct stack_id {
		uint32_t stack;
		uint32_t node; /* plus 1; 0: not defined */
	} * dense;
	size_t dense_count, dense_limit;
	struct map sparse; /* other ids: index into `far` */
	struct stack_id *far;
	size_t far_count, far_capacity;
	struct frame *scratch;
	size_t scratch_count;
	uint32_t *order; /* see stacks_order(); NULL: not asked for */
	size_t order_count;
};

/* `id_limit`: no well-formed file of this size has ids above it, so that much may be indexed. */
int stacks_init(struct stacks *s, uint64_t id_limit);
void stacks_fini(struct stacks *s);

static inline const struct frame *stacks_frame(const struct stacks *s, uint32_t node)
{
	return &s->frames.items[s->nodes[node].frame];
}

/* The node under `parent` for this frame, made when new. 0: no memory, or too deep. */
uint32_t stacks_node(struct stacks *s, uint32_t parent, const struct frame *frame);
/* The ancestor of a node (or itself) with that depth, which is not greater than the node's own. */
uint32_t stacks_ancestor(const struct stacks *s, uint32_t node, uint32_t depth);
/* The file's id `raw` is the stack that ends at `node`. 0, -EEXIST when it was defined before. */
int stacks_define(struct stacks *s, uint64_t raw, uint32_t node);
/* The node of the file's id; false: not defined. */
bool stacks_defined(const struct stacks *s, uint64_t raw, uint32_t *node);

uint32_t stacks_slow(const struct stacks *s, uint64_t raw);
/* The canonical id of the file's id, 0 when that is not defined. */
static inline uint32_t stacks_canonical(const struct stacks *s, uint64_t raw)
{
	return raw < s->dense_count ? s->dense[raw].stack : stacks_slow(s, raw);
}

size_t stacks_frames(struct stacks *s, uint32_t stack, const struct frame **frames);

/* All canonical ids but 0 in the order of the tree: each stack beside those that it shares most
 * frames with, so that who looks at all of them sees each node once. Kept. 0 or -ENOMEM. */
int stacks_order(struct stacks *s, const uint32_t **order, size_t *count);

#endif
