/* tree.c - see tree.h. */
#include "report/html/tree.h"

struct columns {
	struct str depth, frame, sums[FRAME_TREE_SUMS];
	unsigned measures;
	uint32_t count, before;
};

/* A child's sums as what its parent has more: mostly 0. */
static void write_node(
    struct columns *c, uint32_t depth, uint32_t frame, const uint64_t *sums, const uint64_t *parent)
{
	block_signed(&c->depth, (int64_t)depth - (int64_t)c->before);
	c->before = depth;
	block_number(&c->frame, frame);
	for (unsigned k = 0; k < c->measures; k++)
		block_number(&c->sums[k], parent ? parent[k] - sums[k] : sums[k]);
	c->count++;
}

/* The children that are cut, as one: frame 0 and, in front of its depth's column, how many. */
static void write_more(const struct frame_tree *t, struct frame_node *of, uint32_t depth,
    struct columns *c, struct str *more)
{
	uint64_t sums[FRAME_TREE_SUMS];
	uint32_t count = frame_tree_cut(t, of, sums);

	if (!count)
		return;
	of->more = c->count;
	write_node(c, depth, 0, sums, of->sums);
	block_number(more, count);
}

/* In preorder, without recursion: a stack may have thousands of frames. */
static void write_kept(struct frame_tree *t, struct columns *c, struct str *more)
{
	uint32_t at = 0, depth = 0;

	do {
		struct frame_node *n = &t->nodes.items[at];

		if (n->kept) {
			n->written = c->count;
			write_node(c, depth, n->frame ? n->frame : 1, n->sums,
			    at ? t->nodes.items[n->parent].sums : NULL);
			write_more(t, n, depth + 1, c, more);
		}
		at = frame_tree_next(t, at, n->kept, &depth);
	} while (at);
}

static uint32_t write_tree(struct frame_tree *t, struct str *to)
{
	struct columns c = {.measures = t->measures};
	struct str more = {0}, *parts[] = {&c.depth, &c.frame, &more};

	write_kept(t, &c, &more);
	block_number(to, c.count);
	for (size_t i = 0; i < 3 + t->measures; i++) {
		struct str *part = i < 3 ? parts[i] : &c.sums[i - 3];

		str_add(to, str_text(part), part->length);
		to->failed |= part->failed;
		str_free(part);
	}
	return c.count;
}

uint32_t tree_write(struct frame_tree *t, uint32_t most, struct str *to)
{
	double share = TREE_SHARE_MIN;

	/* "More" nodes come to at most as many as are kept. */
	while (frame_tree_keep(t, share) > most / 2)
		share *= 1.5;
	return write_tree(t, to);
}
