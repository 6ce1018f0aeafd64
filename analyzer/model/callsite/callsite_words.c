#include "model/callsite/callsite_words.h"

#include <errno.h>
#include <stdlib.h>

#include "model/callsite/wrappers.h"

/* Stacks with close ids were seen one after the other, and share most of their frames. */
struct callsite_order {
	uint32_t stack, index;
};

static int by_stack(const void *a, const void *b)
{
	const struct callsite_order *x = a, *y = b;

	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

struct writer {
	const struct blame_context *context;
	const struct callsite_order *order;
	struct blame_parts parts;
	struct callsite_words *out;
};

static void put_words(
    void *arg, size_t item, const struct stack_path *path, const blame_marks_t *marks, int at)
{
	struct writer *w = arg;
	struct callsite_words *out = &w->out[w->order[item].index];
	int part = blame_part(w->context, path, at, &w->parts);
	const struct symbol *s;

	*out = (struct callsite_words){.function = "(unknown)",
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

int callsite_words_read(const struct feed *feed, const struct blame_context *context,
    const struct callsite_stack *stacks, size_t count, struct callsite_words *out)
{
	struct callsite_order *order = malloc((count + 1) * sizeof(*order));
	struct wrapper_input *list = malloc((count + 1) * sizeof(*list));
	struct writer writer = {.context = context, .order = order, .out = out};
	int rc = -ENOMEM;

	if (!order || !list)
		goto out;
	for (size_t i = 0; i < count; i++)
		order[i] = (struct callsite_order){stacks[i].stack, (uint32_t)i};
	qsort(order, count, sizeof(*order), by_stack);
	for (size_t i = 0; i < count; i++) {
		const struct callsite_stack *stats = &stacks[order[i].index];

		list[i] = (struct wrapper_input){
		    stats->stack, stats->total_bytes, stats->total_count, stats->largest, -1};
		out[order[i].index] =
		    (struct callsite_words){.function = "(unknown)", .stack = stats->stack};
	}
	rc = wrappers_step_out(
	    feed, context, list, count, (struct wrapper_witness){&writer, put_words});
out:
	blame_parts_fini(&writer.parts);
	free(order);
	free(list);
	return rc;
}
