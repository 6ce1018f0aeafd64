/* flame.c - the tree of a space's stacks, cut to what can be seen. */
#include <stdlib.h>
#include <string.h>

#include "report/frame_tree.h"
#include "report/html/page_parts.h"
#include "util/num.h"

/* A frame narrower than this share of every measure cannot be seen. */
#define SHARE_MIN 0.0005

_Static_assert(MEASURES == FRAME_TREE_SUMS, "a node has a sum for each measure");

enum frame_flag {
	FLAG_PYTHON = 1,
	FLAG_USER = 2,
	FLAG_LIBRARY = 4,
	FLAG_INTERPRETER = 8,
	FLAG_CUT = 16,
	FLAG_INLINED = 32,
	FLAG_FRAMEWORK = 64
};

static uint32_t flags_of(
    const struct page_frames *frames, const struct knowledge *known, const struct symbol *s)
{
	static const uint32_t of_role[] = {[FRAME_OWN] = FLAG_USER,
	    [FRAME_FRAMEWORK] = FLAG_FRAMEWORK | FLAG_LIBRARY,
	    [FRAME_LIBRARY] = FLAG_LIBRARY,
	    [FRAME_RUNTIME] = 0};

	return of_role[frame_role(&frames->context, known, s)] | (s->python ? FLAG_PYTHON : 0) |
	       (s->interpreter ? FLAG_INTERPRETER : 0) | (s->cut ? FLAG_CUT : 0) |
	       (s->inlined ? FLAG_INLINED : 0);
}

static bool same_frame(const struct page_frame *a, const struct page_frame *b)
{
	return a->function == b->function && a->file == b->file && a->line == b->line &&
	       a->module == b->module && a->flags == b->flags;
}

uint32_t page_frame(struct page *page, const struct symbol *symbol)
{
	struct page_frames *frames = &page->frames;
	uint64_t *known = symbol->id ? map_put(&frames->by_id, symbol->id) : NULL;
	struct page_frame f;
	uint64_t key, *slot;

	if (known && *known)
		return (uint32_t)*known - 1;
	f = (struct page_frame){.function = block_text_id(&page->texts, symbol->function),
	    .file = block_text_id(&page->texts, symbol->file),
	    .module =
		block_text_id(&page->texts, symbol->file ? NULL : str_base_name(symbol->module)),
	    .line = symbol->line,
	    .flags = flags_of(frames, page->r->frameworks.knowledge, symbol)};
	key = ((uint64_t)f.function << 32 ^ (uint64_t)f.file << 12 ^ f.line) * 31 + f.module;
	for (key = key * 64 + f.flags;; key++) {
		slot = map_put(&frames->by_text, key);
		if (!slot)
			return PAGE_NO_PLACE;
		if (!*slot) {
			if (vec_push(&frames->list, f))
				return PAGE_NO_PLACE;
			*slot = frames->list.count;
		}
		if (same_frame(&frames->list.items[*slot - 1], &f))
			break;
	}
	if (known)
		*known = *slot;
	return (uint32_t)*slot - 1;
}

void page_frames_write(const struct page *page, struct str *to)
{
	const struct page_frames *f = &page->frames;

	block_number(to, f->list.count);
	for (size_t i = 0; i < f->list.count; i++)
		block_number(to, f->list.items[i].function);
	for (size_t i = 0; i < f->list.count; i++)
		block_number(to, f->list.items[i].file);
	for (size_t i = 0; i < f->list.count; i++)
		block_number(to, f->list.items[i].line);
	for (size_t i = 0; i < f->list.count; i++)
		block_number(to, f->list.items[i].flags);
	for (size_t i = 0; i < f->list.count; i++)
		block_number(to, f->list.items[i].module);
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

		if (frame == PAGE_NO_PLACE || frame_tree_child(t, at, frame + 1, &at) ||
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
	int rc = frame_tree_init(t);

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

struct columns {
	struct str depth, frame, sums[MEASURES];
	uint32_t count, before;
};

/* A child's sums as what its parent has more: mostly 0. */
static void write_node(
    struct columns *c, uint32_t depth, uint32_t frame, const uint64_t *sums, const uint64_t *parent)
{
	block_signed(&c->depth, (int64_t)depth - (int64_t)c->before);
	c->before = depth;
	block_number(&c->frame, frame);
	for (unsigned k = 0; k < MEASURES; k++)
		block_number(&c->sums[k], parent ? parent[k] - sums[k] : sums[k]);
	c->count++;
}

/* The children that are cut, as one: frame 0 and, in front of its depth's column, how many. */
static void write_more(const struct frame_tree *t, struct frame_node *of, uint32_t depth,
    struct columns *c, struct str *more)
{
	uint64_t sums[MEASURES];
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

static uint32_t write_tree(struct frame_tree *t, struct str *to)
{
	struct columns c = {0};
	struct str more = {0}, *parts[] = {&c.depth, &c.frame, &more};

	write_kept(t, &c, &more);
	block_number(to, c.count);
	for (size_t i = 0; i < 3 + MEASURES; i++) {
		struct str *part = i < 3 ? parts[i] : &c.sums[i - 3];

		str_add(to, str_text(part), part->length);
		to->failed |= part->failed;
		str_free(part);
	}
	return c.count;
}

int flame_write(struct page *page, const struct page_space *sp, uint32_t most,
    struct flame_nodes *nodes, struct str *to)
{
	struct frame_tree t = {0};
	double share = SHARE_MIN;
	int rc;

	nodes->of_stack = calloc(sp->stacks.count + 1u, sizeof(*nodes->of_stack));
	rc = nodes->of_stack ? add_stacks(page, sp, &t, nodes->of_stack) : -ENOMEM;
	if (!rc) {
		add_rest(sp, &t);
		/* "More" nodes come to at most as many as are kept. */
		while (frame_tree_keep(&t, share) > most / 2)
			share *= 1.5;
		rc = number_nodes(&t, sp, write_tree(&t, to), nodes);
	}
	frame_tree_fini(&t);
	return rc;
}
