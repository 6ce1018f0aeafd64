/*
 * frame_tree.h - the stacks of a space as a tree of frames with sums, as a flame graph shows it: on
 * a page and in a terminal. Memory is bounded by the nodes: at most FRAME_TREE_NODES.
 */
#ifndef ANALYZER_REPORT_FRAME_TREE_H
#define ANALYZER_REPORT_FRAME_TREE_H

#include "util/map.h"
#include "util/vec.h"

#define FRAME_TREE_SUMS 7u /* at most: a number for each measure */
/* Stacks that come later end at the frame that they share with others. */
#define FRAME_TREE_NODES 1000000u

struct frame_node {
	uint32_t parent, frame; /* frame: the caller's number, not 0; the root has 0 */
	uint32_t child, last, next; /* first and last child, and the next sibling; 0: none */
	bool kept;
	/* For who writes it: the number that it has there, and that of its children that are cut,
	 * as one; 0: none. */
	uint32_t written, more;
	uint64_t sums[FRAME_TREE_SUMS]; /* with all below it, after frame_tree_sum() */
};

/* Zero at first. */
struct frame_tree {
	unsigned measures; /* sums that are used */
	VEC(struct frame_node)
	nodes; /* the first is the root; a parent comes before its children */
	struct map children; /* parent and frame to node */
};

/* Make the root of a tree with that many sums. 0 or -ENOMEM. */
int frame_tree_init(struct frame_tree *t, unsigned measures);
/* Find or make the child of a node with that frame; without room it is the node itself. 0 or
 * -ENOMEM. */
int frame_tree_child(struct frame_tree *t, uint32_t parent, uint32_t frame, uint32_t *out);
/* Add to each node what is below it; until then `sums` are of the stacks that end there. */
void frame_tree_sum(struct frame_tree *t);
/* Keep what has that share of any of the root's sums. Returns the number of nodes that it kept. */
uint32_t frame_tree_keep(struct frame_tree *t, double share);
/* Sum the children that were not kept. Returns their number. */
uint32_t frame_tree_cut(
    const struct frame_tree *t, const struct frame_node *of, uint64_t sums[FRAME_TREE_SUMS]);
/* Return the next node in preorder, without `at`'s children unless `into`; 0: it was the last.
 * *depth, 0 for the root, follows. */
uint32_t frame_tree_next(const struct frame_tree *t, uint32_t at, bool into, uint32_t *depth);
void frame_tree_fini(struct frame_tree *t);

#endif
