/* flame.c - the tree of a space's stacks. */
#include <stdlib.h>
#include <string.h>

#include "report/html/page_parts.h"
#include "report/html/tree.h"
#include "util/num.h"

uint32_t page_frame(struct page *page, const struct symbol *symbol)
{
	struct page_frames *frames = &page->frames;
	uint64_t *known = symbol->id ? map_put(&frames->by_id, symbol->id) : NULL;
	enum frame_role role;
	uint32_t number;

	if (known && *known)
		return (uint32_t)*known - 1;
	role = frame_role(&frames->context, page->r->frameworks.knowledge, symbol);
	number =
	    frame_list_add(&frames->list, &page->texts, symbol, frame_list_flags(symbol, role));
	if (known && number != FRAME_NONE)
		*known = number + 1u;
	return number;
}

static bool is_empty(const struct page_stack *s)
{
	for (unsigned i = 0; i < MEASURES; i++)
		if (s->measures[i])
			return false;
	return true;
}

typedef VEC(uint32_t) way_t; /* the nodes of the last path */

static int add_stack(struct page *page, struct frame_tree *t, const struct page_stack *s,
    const struct stack_path *path, way_t *way, uint32_t *node)
{
	uint32_t at = 0;

	/* The node of each frame that this path shares with the last one is known. */
	way->count = num_least(way->count, path->same);
	if (way->count)
		at = way->items[way->count - 1];
	for (size_t i = way->count; i < path->count; i++) {
		uint32_t frame = page_frame(page, &path->symbols[i]);

		if (frame == FRAME_NONE || frame_tree_child(t, at, frame + 1, &at) ||
		    vec_push(way, at))
			return -ENOMEM;
	}
	for (unsigned i = 0; i < MEASURES; i++)
		t->nodes.items[at].sums[i] += s->measures[i];
	*node = at;
	return 0;
}

static int add_stacks(
    struct page *page, const struct page_space *sp, struct frame_tree *t, uint32_t *of_stack)
{
	const uint32_t *order = NULL;
	size_t count = feed_stack_order(&page->feed, &order);
	struct stack_path path = {0};
	way_t way = {0};
	int rc = frame_tree_init(t, MEASURES);

	/* Without an order, as they came; those that the order lacks have no frames. */
	for (size_t i = 0; i < (order ? count : sp->stacks.count) && !rc; i++) {
		const struct page_stack *s =
		    order ? page_stack_find(sp, order[i]) : &sp->stacks.items[i];

		if (!s || is_empty(s))
			continue;
		rc = feed_path(&page->feed, s->stack, &path);
		if (!rc)
			rc = add_stack(page, t, s, &path, &way, &of_stack[s - sp->stacks.items]);
	}
	vec_free(&way);
	trace_path_fini(&path);
	return rc;
}

/* Stacks without frames belong to the root. */
static void add_rest(const struct page_space *sp, struct frame_tree *t)
{
	uint64_t all[MEASURES] = {0};
	struct frame_node *root = &t->nodes.items[0];

	for (size_t i = 0; i < sp->stacks.count; i++)
		for (unsigned k = 0; k < MEASURES; k++)
			all[k] += sp->stacks.items[i].measures[k];
	frame_tree_sum(t);
	for (unsigned k = 0; k < MEASURES; k++)
		root->sums[k] = num_most(root->sums[k], all[k]);
}

/* The node that has what a stack's node had; 0: the root. */
static uint32_t written_as(const struct frame_tree *t, uint32_t at)
{
	uint32_t below = at;

	while (!t->nodes.items[at].kept) {
		below = at;
		at = t->nodes.items[at].parent;
	}
	return below == at ? t->nodes.items[at].written : t->nodes.items[at].more;
}

/* Says where the stacks are in the tree that was written. 0 or -ENOMEM. */
static int number_nodes(const struct frame_tree *t, const struct page_space *sp, uint32_t count,
    struct flame_nodes *nodes)
{
	nodes->count = count;
	nodes->parents = calloc(count + 1u, sizeof(*nodes->parents));
	if (!nodes->parents)
		return -ENOMEM;
	for (size_t i = 1; i < t->nodes.count; i++) {
		const struct frame_node *n = &t->nodes.items[i];

		if (n->kept)
			nodes->parents[n->written] = t->nodes.items[n->parent].written;
	}
	for (size_t i = 0; i < t->nodes.count; i++)
		if (t->nodes.items[i].more)
			nodes->parents[t->nodes.items[i].more] = t->nodes.items[i].written;
	for (size_t i = 0; i < sp->stacks.count; i++)
		nodes->of_stack[i] = written_as(t, nodes->of_stack[i]);
	return 0;
}

int flame_write(struct page *page, const struct page_space *sp, uint32_t most,
    struct flame_nodes *nodes, struct str *to)
{
	struct frame_tree t = {0};
	int rc;

	nodes->of_stack = calloc(sp->stacks.count + 1u, sizeof(*nodes->of_stack));
	rc = nodes->of_stack ? add_stacks(page, sp, &t, nodes->of_stack) : -ENOMEM;
	if (!rc) {
		add_rest(sp, &t);
		rc = number_nodes(&t, sp, tree_write(&t, most, to), nodes);
	}
	frame_tree_fini(&t);
	return rc;
}
