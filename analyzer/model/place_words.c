/* place_words.c - see place_words.h. */
#include "model/place_words.h"

#include <errno.h>
#include <stdlib.h>

#include "model/wrappers.h"

struct place_order {
	uint32_t stack, index;
};

static int by_stack(const void *a, const void *b)
{
	const struct place_order *x = a, *y = b;

	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

static int blame_each(const struct feed *feed, const struct blame_context *context,
    struct wrapper_input *list, size_t count)
{
	struct stack_path path = {0};
	int rc = 0;

	for (size_t i = 0; i < count && !rc; i++) {
		list[i].frame = -1;
		if (!list[i].stack)
			continue;
		rc = feed_path(feed, list[i].stack, &path);
		if (!rc)
			list[i].frame = blame_frame(context, path.symbols, path.count);
	}
	trace_path_fini(&path);
	return rc;
}

static void put_words(const struct blame_context *context, const struct stack_path *path, int at,
    struct place_words *out)
{
	const struct symbol *s;
	int part;

	out->import = blame_is_import(context, path->symbols, path->count);
	if (at < 0 || (size_t)at >= path->count)
		return;
	s = &path->symbols[at];
	out->function = s->function;
	out->file = s->file;
	out->line = s->line;
	out->python = s->python;
	out->owner = blame_owner(context, s);
	part = blame_part(context, path->symbols, path->count, at);
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
	struct stack_path path = {0};
	int rc = -ENOMEM;

	if (!order || !list)
		goto out;
	for (size_t i = 0; i < count; i++)
		order[i] = (struct place_order){sites[i].stack, (uint32_t)i};
	qsort(order, count, sizeof(*order), by_stack);
	for (size_t i = 0; i < count; i++) {
		const struct place_site *site = &sites[order[i].index];

		list[i] =
		    (struct wrapper_input){site->stack, site->total_bytes, site->total_count, -1};
	}
	rc = blame_each(feed, context, list, count);
	if (!rc)
		rc = wrappers_step_out(feed, context, list, count);
	for (size_t i = 0; i < count && !rc; i++) {
		struct place_words *words = &out[order[i].index];

		*words = (struct place_words){.function = "(unknown)", .stack = list[i].stack};
		if (!list[i].stack)
			continue;
		rc = feed_path(feed, list[i].stack, &path);
		if (!rc)
			put_words(context, &path, list[i].frame, words);
	}
out:
	trace_path_fini(&path);
	free(order);
	free(list);
	return rc;
}
