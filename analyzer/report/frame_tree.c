/* frame_tree.c - see frame_tree.h. */
#include "report/frame_tree.h"

#include <errno.h>
#include <string.h>

int frame_tree_init(struct frame_tree *t, unsigned measures)
{
	map_seed();
	t->measures = measures;
	return vec_push(&t->nodes, (struct frame_node){0}) ? -ENOMEM : 0;
}

/* Appends a node to its parent's children. */
static int add_node(struct frame_tree *t, uint32_t parent, uint32_t frame)
{
	uint32_t at = (uint32_t)t->nodes.count;
	struct frame_node *p;

	if (vec_push(&t->nodes, (struct frame_node){.parent = parent, .frame = frame}))
		return -ENOMEM;
	p = &t->nodes.items[parent];
	if (p->child)
		t->nodes.items[p->last].next = at;
	else
		p->child = at;
	p->last = at;
	return 0;
}

int frame_tree_child(struct frame_tree *t, uint32_t parent, uint32_t frame, uint32_t *out)
{
	uint64_t key = (uint64_t)parent << 32 | frame, *slot;

	if (t->nodes.count >= FRAME_TREE_NODES) {
		slot = map_find(&t->children, key);
		*out = slot ? (uint32_t)*slot : parent;
		return 0;
	}
	slot = map_put(&t->children, key);
	if (!slot)
		return -ENOMEM;
	if (!*slot) {
		if (add_node(t, parent, frame))
			return -ENOMEM;
		*slot = t->nodes.count - 1;
	}
	*out = (uint32_t)*slot;
	return 0;
}

void frame_tree_sum(struct frame_tree *t)
{
	for (size_t i = t->nodes.count; i-- > 1;) {
		const struct frame_node *n = &t->nodes.items[i];

		for (unsigned k = 0; k < t->measures; k++)
			t->nodes.items[n->parent].sums[k] += n->sums[k];
	}
}

uint32_t frame_tree_keep(struct frame_tree *t, double share)
{
	const struct frame_node *root = &t->nodes.items[0];
	uint32_t kept = 0;

	for (size_t i = 0; i < t->nodes.count; i++) {
		struct frame_node *n = &t->nodes.items[i];

		n->kept = i == 0;
		for (unsigned k = 0; k < t->measures; k++)
			n->kept |=
			    n->sums[k] && (double)n->sums[k] >= share * (double)root->sums[k];
		kept += n->kept;
	}
	return kept;
}

uint32_t frame_tree_cut(
    const struct frame_tree *t, const struct frame_node *of, uint64_t sums[FRAME_TREE_SUMS])
{
	uint32_t count = 0;

	memset(sums, 0, FRAME_TREE_SUMS * sizeof(*sums));
	for (uint32_t at = of->child; at; at = t->nodes.items[at].next) {
		const struct frame_node *n = &t->nodes.items[at];

		if (n->kept)
			continue;
		count++;
		for (unsigned k = 0; k < t->measures; k++)
			sums[k] += n->sums[k];
	}
	return count;
}

uint32_t frame_tree_next(const struct frame_tree *t, uint32_t at, bool into, uint32_t *depth)
{
	const struct frame_node *nodes = t->nodes.items;

	if (into && nodes[at].child) {
		++*depth;
		return nodes[at].child;
	}
	while (at && !nodes[at].next) {
		at = nodes[at].parent;
		--*depth;
	}
	return at ? nodes[at].next : 0;
}

void frame_tree_fini(struct frame_tree *t)
{
	vec_free(&t->nodes);
	map_free(&t->children);
}
