/*
 * union.c - the stacks of both sides in one tree. Frames are the same by the names that survive a
 * rebuild; what one side lacks is a branch of the other's alone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diff/compare.h"

/* Stacks that come later end at the frame that they share with others. */
#define NODES_MAX 1000000u

struct joined {
	struct comparison *c;
	struct map renamed; /* A's name of a function that B calls otherwise: B's */
	struct map frames, children; /* name; parent and frame: 1 + index */
	VEC(struct diff_frame) frame_list;
	VEC(struct diff_node) nodes;
	struct diff_line **lines; /* of the comparison's pairs */
};

static int note_renamed(struct joined *t)
{
	const struct diff_sides *sides = t->c->sides;

	for (size_t i = 0; i < sides->pairs.list.count; i++) {
		const struct pair *pair = &sides->pairs.list.items[i];
		uint64_t *slot;

		if (!pair->renamed || pair->a == SITE_NONE || pair->b == SITE_NONE)
			continue;
		slot = map_put(&t->renamed, sides->a.sites.items[pair->a].names.all);
		if (!slot)
			return -ENOMEM;
		*slot = sides->b.sites.items[pair->b].names.all;
	}
	return 0;
}

static const char *copy(struct joined *t, const char *text, bool *failed)
{
	char *out = text ? arena_copy(&t->c->result->arena, text, strlen(text)) : NULL;

	*failed |= text && !out;
	return out;
}

static int new_frame(struct joined *t, struct side *side, const struct symbol *symbol)
{
	struct diff_frame f = {.symbol = *symbol,
	    .role = frame_role(&side->context, side->verdict.frameworks.knowledge, symbol)};
	bool failed = false;

	f.symbol.id = 0;
	/* An address is not the same in another build. */
	f.symbol.function = copy(t,
	    symbol->known || symbol->python || !symbol->module ? symbol->function : "(unknown)",
	    &failed);
	f.symbol.file = copy(t, symbol->file, &failed);
	f.symbol.module = copy(t, symbol->module, &failed);
	return failed || vec_push(&t->frame_list, f) ? -ENOMEM : 0;
}

static int frame_of(struct joined *t, struct side *side, const struct symbol *symbol, uint32_t *out)
{
	uint64_t name = side_names(side, symbol).all, *other = NULL, *slot;

	if (side == &t->c->sides->a)
		other = map_find(&t->renamed, name);
	slot = map_put(&t->frames, other ? *other : name);
	if (!slot)
		return -ENOMEM;
	if (!*slot) {
		if (new_frame(t, side, symbol))
			return -ENOMEM;
		*slot = t->frame_list.count;
	} else if (side == &t->c->sides->b &&
		   t->frame_list.items[*slot - 1].symbol.line != symbol->line) {
		t->frame_list.items[*slot - 1].symbol.line = 0;
	}
	*out = (uint32_t)(*slot - 1);
	return 0;
}

static int child_of(struct joined *t, uint32_t parent, uint32_t frame, uint32_t *out)
{
	uint64_t key = (uint64_t)parent << 32 | (frame + 1u), *slot;

	if (t->nodes.count >= NODES_MAX) {
		slot = map_find(&t->children, key);
		*out = slot ? (uint32_t)*slot : parent;
		return 0;
	}
	slot = map_put(&t->children, key);
	if (!slot)
		return -ENOMEM;
	if (!*slot) {
		if (vec_push(&t->nodes, (struct diff_node){.parent = parent, .frame = frame}))
			return -ENOMEM;
		*slot = t->nodes.count - 1;
	}
	*out = (uint32_t)*slot;
	return 0;
}

/* Returns the bytes acquired. */
static uint64_t add_sums(
    uint64_t *to, uint64_t *line, const struct side_space *space, uint32_t chain)
{
	const struct chain_sums *s;
	uint64_t sums[DIFF_MEASURES];

	if (!space || chain == SITE_NONE)
		return 0;
	s = &space->sums[chain];
	sums[DIFF_AT_MOMENT] = s->live;
	sums[DIFF_AT_PEAK] = s->peak;
	sums[DIFF_ACQUIRED] = s->acquired;
	for (unsigned i = 0; i < DIFF_MEASURES; i++) {
		to[i] += sums[i];
		line[i] += sums[i];
	}
	return s->acquired;
}

/* The lines of all pairs; those of arenas are one line. 0 or -ENOMEM. */
static int find_lines(struct joined *t)
{
	size_t pairs = t->c->sides->pairs.list.count;
	struct diff_line *arenas = NULL;

	t->lines = calloc(pairs + 1, sizeof(struct diff_line *));
	if (!t->lines)
		return -ENOMEM;
	for (size_t i = 0; i < t->c->count; i++) {
		struct ranked_line *at = &t->c->list[i];

		*(at->pair == SITE_NONE ? &arenas : &t->lines[at->pair]) = &at->line;
	}
	for (size_t i = 0; i < pairs; i++)
		if (!t->lines[i])
			t->lines[i] = arenas;
	return 0;
}

/* Frames of the interpreter itself are left out, as they do not count for the name of a stack. */
static int add_twin(struct joined *t, const struct twin *twin, struct stack_path *paths)
{
	struct diff_sides *sides = (struct diff_sides *)t->c->sides;
	bool of_b = twin->chain_b != SITE_NONE;
	struct side *side = of_b ? &sides->b : &sides->a;
	struct stack_path *path = &paths[of_b];
	uint32_t stack = side->chains.items[of_b ? twin->chain_b : twin->chain_a].stack, at = 0;
	struct diff_line *line = t->lines[twin->pair];
	uint64_t none[DIFF_MEASURES] = {0}, acquired;
	struct diff_node *node;
	int rc = stack ? feed_path(&side->feed, stack, path) : 0;

	for (size_t i = 0; stack && i < path->count && !rc; i++) {
		uint32_t frame;

		if (path->symbols[i].interpreter)
			continue;
		rc = frame_of(t, side, &path->symbols[i], &frame);
		if (!rc)
			rc = child_of(t, at, frame, &at);
	}
	if (rc)
		return rc;
	node = &t->nodes.items[at];
	acquired = add_sums(node->a, line ? line->a_bytes : none, t->c->a, twin->chain_a);
	acquired += add_sums(node->b, line ? line->b_bytes : none, t->c->b, twin->chain_b);
	if (line && line->kind != DIFF_SAME)
		node->changed += acquired;
	return 0;
}

static int keep(struct joined *t)
{
	struct arena *arena = &t->c->result->arena;
	struct diff_tree *out = &t->c->out->tree;
	size_t frames = t->frame_list.count * sizeof(*out->frames);
	size_t nodes = t->nodes.count * sizeof(*out->nodes);

	out->frames = arena_alloc(arena, frames + 1);
	out->nodes = arena_alloc(arena, nodes + 1);
	if (!out->frames || !out->nodes)
		return -ENOMEM;
	if (frames)
		memcpy(out->frames, t->frame_list.items, frames);
	memcpy(out->nodes, t->nodes.items, nodes);
	out->frame_count = t->frame_list.count;
	out->node_count = t->nodes.count;
	return 0;
}

int compare_trees(struct comparison *c)
{
	struct joined t = {.c = c};
	struct stack_path paths[2] = {0};
	int rc = vec_push(&t.nodes, (struct diff_node){0});

	if (!rc)
		rc = note_renamed(&t);
	if (!rc)
		rc = find_lines(&t);
	for (size_t i = 0; i < c->twins.count && !rc; i++)
		rc = add_twin(&t, &c->twins.items[i], paths);
	if (!rc)
		rc = keep(&t);
	trace_path_fini(&paths[0]);
	trace_path_fini(&paths[1]);
	free(t.lines);
	vec_free(&t.frame_list);
	vec_free(&t.nodes);
	map_free(&t.renamed);
	map_free(&t.frames);
	map_free(&t.children);
	return rc;
}
