/* place_words.c - see place_words.h. */
#include "model/place_words.h"

#include <errno.h>
#include <stdlib.h>

#include "model/wrappers.h"

struct place_order {
	uint32_t rank, index; /* rank: in the order of feed_stack_order(), else the stack's id */
};

static int by_rank(const void *a, const void *b)
{
	const struct place_order *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

/* Stacks that share frames come one after the other. 0 or -ENOMEM. */
static int put_in_order(const struct feed *feed, const struct place_site *sites, size_t count,
    struct place_order *order)
{
	const uint32_t *stacks = NULL;
	size_t known = count >= FEED_LOOKS ? feed_stack_order(feed, &stacks) : 0;
	uint32_t *ranks = known ? calloc(known + 1, sizeof(*ranks)) : NULL;

	if (known && !ranks)
		return -ENOMEM;
	for (size_t i = 0; i < known; i++)
		if (stacks[i] <= known)
			ranks[stacks[i]] = (uint32_t)i + 1;
	for (size_t i = 0; i < count; i++) {
		uint32_t stack = sites[i].stack;

		order[i] = (struct place_order){stack, (uint32_t)i};
		if (known)
			order[i].rank = stack <= known ? ranks[stack] : 0;
	}
	free(ranks);
	qsort(order, count, sizeof(*order), by_rank);
	return 0;
}

struct writer {
	const struct blame_context *context;
	const struct place_order *order;
	struct blame_parts parts;
	struct place_words *out;
};

static void put_words(
    void *arg, size_t item, const struct stack_path *path, const blame_marks_t *marks, int at)
{
	struct writer *w = arg;
	struct place_words *out = &w->out[w->order[item].index];
	int part = blame_part(w->context, path, at, &w->parts);
	const struct symbol *s;

	*out = (struct place_words){.function = "(unknown)",
	    .stack = out->stack,
	    .import = blame_is_import(&marks->items[path->count])};
	if (at < 0)
		return;
	s = &path->symbols[at];
	out->function = s->function;
	out->file = s->file;
	out->line = s->line;
	out->python = s->python;
	out->owner = blame_owner(w->context, s);
	if (part >= 0) {
		out->part = path->symbols[part].function;
		out->part_file = path->symbols[part].file;
	}
}

int place_words_read(const struct feed *feed, const struct blame_context *context,
    const struct place_site *sites, size_t count, struct place_words *out)
{
	struct place_order *order = malloc((count + 1) * sizeof(*order));
	struct wrapper_input *list = malloc((count + 1) * sizeof(*list));
	struct writer writer = {.context = context, .order = order, .out = out};
	int rc = -ENOMEM;

	if (!order || !list)
		goto out;
	rc = put_in_order(feed, sites, count, order);
	if (rc)
		goto out;
	for (size_t i = 0; i < count; i++) {
		const struct place_site *site = &sites[order[i].index];

		list[i] =
		    (struct wrapper_input){site->stack, site->total_bytes, site->total_count, -1};
		out[order[i].index] =
		    (struct place_words){.function = "(unknown)", .stack = site->stack};
	}
	rc = wrappers_step_out(
	    feed, context, list, count, (struct wrapper_witness){&writer, put_words});
out:
	blame_parts_fini(&writer.parts);
	free(order);
	free(list);
	return rc;
}
