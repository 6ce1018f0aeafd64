/* chains.c - the stacks of both sides, matched by the names of all their frames. */
#include <errno.h>
#include <stdlib.h>

#include "diff/compare.h"

#define STACKS_OF_LINE 4u

static uint64_t mix(uint64_t key, uint64_t word)
{
	key = (key ^ word) * 0x9e3779b97f4a7c15u;
	return key ^ key >> 29;
}

static int add_chains(struct comparison *c, struct map *known, const struct side *side,
    const struct side_space *space, const uint32_t *of, bool second)
{
	for (uint32_t i = 0; space && i < side->chains.count; i++) {
		const struct chain *chain = &side->chains.items[i];
		uint64_t bytes = space->chain_bytes[i], *index;
		uint32_t pair = of[chain->site];
		struct twin *twin;

		/* Pictures show what it held at other times, too. */
		if (!bytes && !(space->sums && space->sums[i].acquired))
			continue;
		index = map_put(known, mix(chain->key, pair + 1u));
		if (!index)
			return -ENOMEM;
		if (!*index) {
			if (vec_push(&c->twins,
				(struct twin){
				    .pair = pair, .chain_a = SITE_NONE, .chain_b = SITE_NONE}))
				return -ENOMEM;
			*index = c->twins.count;
		}
		twin = &c->twins.items[*index - 1];
		*(second ? &twin->chain_b : &twin->chain_a) = i;
		*(second ? &twin->b : &twin->a) += bytes;
	}
	return 0;
}

static int by_pair(const void *x, const void *y)
{
	const struct twin *a = x, *b = y;
	uint64_t by_a = (uint64_t)llabs((int64_t)(a->b - a->a));
	uint64_t by_b = (uint64_t)llabs((int64_t)(b->b - b->a));

	if (a->pair != b->pair)
		return a->pair < b->pair ? -1 : 1;
	if (by_a != by_b)
		return by_a < by_b ? 1 : -1;
	return a->chain_b < b->chain_b ? -1 : a->chain_b > b->chain_b;
}

int compare_stacks(struct comparison *c)
{
	struct map known = {0};
	int rc = add_chains(c, &known, &c->sides->a, c->a, c->sides->pairs.of_a, false);

	if (!rc)
		rc = add_chains(c, &known, &c->sides->b, c->b, c->sides->pairs.of_b, true);
	map_free(&known);
	if (rc)
		return rc;
	if (c->twins.count)
		qsort(c->twins.items, c->twins.count, sizeof(*c->twins.items), by_pair);
	for (size_t i = 0; i < c->twins.count; i++) {
		const struct twin *t = &c->twins.items[i];
		const struct pair *pair = &c->sides->pairs.list.items[t->pair];
		bool matched = pair->a != SITE_NONE && pair->b != SITE_NONE;

		if (t->chain_a == SITE_NONE)
			*(matched ? &c->out->b.by_line_bytes : &c->out->b.unmatched_bytes) += t->b;
		if (t->chain_b == SITE_NONE)
			*(matched ? &c->out->a.by_line_bytes : &c->out->a.unmatched_bytes) += t->a;
	}
	return 0;
}

static size_t first_twin(const struct comparison *c, uint32_t pair)
{
	size_t low = 0, high = c->twins.count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (c->twins.items[middle].pair < pair)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct diff_stack stack_of(const struct comparison *c, const struct twin *t)
{
	const struct side *side = t->chain_b != SITE_NONE ? &c->sides->b : &c->sides->a;
	const struct chain *chain =
	    &side->chains.items[t->chain_b != SITE_NONE ? t->chain_b : t->chain_a];
	struct diff_stack out = {stack_view_of(&side->feed, chain->stack), chain->frame,
	    compare_per(t->a, c->request->per_request && c->a ? c->a->requests : 0),
	    compare_per(t->b, c->request->per_request && c->b ? c->b->requests : 0)};

	if (out.frame >= out.stack.count)
		out.stack = (struct stack_view){NULL, 0};
	return out;
}

int compare_list_stacks(struct comparison *c, compare_stacks_t *stacks)
{
	for (size_t i = 0; i < c->count; i++) {
		struct diff_line *p = &c->list[i].line;

		p->first_stack = stacks->count;
		if (p->kind == DIFF_SAME || c->list[i].pair == SITE_NONE)
			continue;
		for (size_t k = first_twin(c, c->list[i].pair);
		     k < c->twins.count && c->twins.items[k].pair == c->list[i].pair &&
		     p->stack_count < STACKS_OF_LINE;
		     k++) {
			if (!c->twins.items[k].a && !c->twins.items[k].b)
				break;
			if (vec_push(stacks, stack_of(c, &c->twins.items[k])))
				return -ENOMEM;
			p->stack_count++;
		}
	}
	return 0;
}
