/*
 * what_if_len.c - `what-if --max-len`: inputs of at most so many tokens, or of at most a share of
 * the longest one that was recorded, and the longest that would still have fitted.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cmd/what_if/what_if.h"

/* --- reading --- */

static void name_reference(
    struct what_if_lengths *l, const struct feed *feed, const struct callsites *callsites)
{
	uint32_t callsite = callsites_of_stack(callsites, STACK_STATS_HEAP, l->of.reference);
	const struct callsite *p = callsite == CALLSITE_NONE ? NULL : &callsites->list[callsite];
	const char *function = p ? p->function : NULL, *file = p ? p->file : NULL;
	const struct symbol *symbols;
	uint32_t line = p ? p->line : 0;
	size_t n;

	if (!p && (n = feed->symbols(feed->self, l->of.reference, &symbols)) > 0) {
		function = symbols[n - 1].function;
		file = symbols[n - 1].file;
		line = symbols[n - 1].line;
	}
	if (file && strrchr(file, '/'))
		file = strrchr(file, '/') + 1;
	snprintf(l->reference, sizeof(l->reference), "%.80s", function ? function : "?");
	if (file)
		snprintf(l->reference + strlen(l->reference),
		    sizeof(l->reference) - strlen(l->reference), " (%.50s:%" PRIu32 ")", file,
		    line);
}

/* WHAT_IF_NOT_HERE where inputs have no lengths there. */
static int read_lengths(
    struct what_if_lengths *l, const struct what_if_scene *scene, struct err *err)
{
	int rc = lengths_read(scene->feed, scene->space, scene->moment_ns, &l->of, err);

	if (rc)
		return rc;
	if (l->of.source == LENGTHS_MARKED && l->tokens)
		return err_set(err, WHAT_IF_NOT_HERE,
		    "--longest: the program's own marks say how long its inputs were, up to %.0f "
		    "tokens",
		    l->of.longest);
	if (l->of.source == LENGTHS_NONE || l->of.longest <= 0)
		return err_set(
		    err, WHAT_IF_NOT_HERE, "no memory there depends on the length of the input");
	if (l->of.source == LENGTHS_SIZES)
		name_reference(l, &scene->feed, scene->callsites);
	return 0;
}

void what_if_lengths_fini(struct what_if_lengths *l)
{
	lengths_fini(&l->of);
}

/* --- how long may they be --- */

/* Finds the largest share that fits. */
static int search(struct what_if_lengths *l, const struct what_if_scene *scene, struct err *err)
{
	double step = 1, most[WHAT_IF_TRIES];
	bool fits[WHAT_IF_TRIES];
	int rc;

	most[0] = l->of.longest;
	rc = scene->fit(scene->arg, most, fits, 1, err);
	l->fits = !rc && fits[0] ? 1 : 0;
	/* Between what fits and the next that does not, twice over. */
	for (int round = 0; round < 2 && !rc && l->fits < 1; round++) {
		double from = l->fits;

		step /= WHAT_IF_TRIES + 1;
		for (uint32_t i = 0; i < WHAT_IF_TRIES; i++)
			most[i] = (from + step * (i + 1)) * l->of.longest;
		rc = scene->fit(scene->arg, most, fits, WHAT_IF_TRIES, err);
		for (uint32_t i = 0; i < WHAT_IF_TRIES && !rc && fits[i]; i++)
			l->fits = from + step * (i + 1);
	}
	return rc;
}

uint64_t what_if_lengths_tokens(const struct what_if_lengths *l, double share)
{
	return (
	    uint64_t)(share * (l->of.source == LENGTHS_MARKED ? l->of.longest : (double)l->tokens));
}

static bool in_tokens(const struct what_if_lengths *l)
{
	return l->of.source == LENGTHS_MARKED || l->tokens;
}

static void settle(const struct what_if_lengths *l, struct what_if_change *changes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct what_if_change *c = &changes[i];

		if (c->kind != WHAT_IF_MAX_LEN || c->share > 0 || in_tokens(l))
			continue;
		/* Where nothing fits, the least that was tried. */
		c->share = fmax(l->fits, 1. / ((WHAT_IF_TRIES + 1) * (WHAT_IF_TRIES + 1)));
		snprintf(c->words, sizeof(c->words), "inputs of at most %.3g %% of the longest",
		    c->share * 100);
	}
}

int what_if_lengths_find(struct what_if_lengths *l, const struct what_if_scene *scene,
    struct what_if_change *changes, size_t count, struct err *err)
{
	int rc;

	if (!l->asked)
		return 0;
	rc = read_lengths(l, scene, err);
	if (rc == WHAT_IF_NOT_HERE) {
		what_if_none(changes, count, WHAT_IF_MAX_LEN, err->text);
		l->asked = false;
		return 0;
	}
	if (!rc)
		rc = search(l, scene, err);
	if (!rc)
		settle(l, changes, count);
	return rc;
}

double what_if_lengths_most(const struct what_if_lengths *l, const struct what_if_change *changes,
    size_t count, size_t which)
{
	double least = 0;

	for (size_t i = 0; i < count && l->asked; i++) {
		const struct what_if_change *c = &changes[i];
		double most = c->share * l->of.longest;

		if (c->kind != WHAT_IF_MAX_LEN ||
		    (i != which && changes[which].kind != WHAT_IF_TOGETHER))
			continue;
		if (c->share <= 0)
			most = l->of.source == LENGTHS_MARKED
				   ? (double)c->value
				   : (double)c->value / (double)l->tokens * l->of.longest;
		if (least <= 0 || most < least)
			least = most;
	}
	return least;
}

/* --- for the report --- */

static uint64_t live_of(const struct what_if_lengths *l, enum scaling order)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < l->of.stacks.count; i++) {
		const struct lengths_stack *s = &l->of.stacks.items[i];

		if ((s->many ? s->held.kind : s->fit.kind) == order)
			sum += s->live;
	}
	return sum;
}

void what_if_lengths_view(const struct what_if_lengths *l, struct what_if_inputs *out)
{
	if (!l->asked)
		return;
	*out = (struct what_if_inputs){
	    .asked = true,
	    .source = l->of.source == LENGTHS_MARKED ? WHAT_IF_BY_MARKS
		      : l->tokens		     ? WHAT_IF_BY_LONGEST
						     : WHAT_IF_BY_SIZES,
	    .reference = l->reference,
	    .longest_tokens = what_if_lengths_tokens(l, 1),
	    .fits = l->fits,
	    .fits_tokens = what_if_lengths_tokens(l, l->fits),
	    .linear_bytes = live_of(l, SCALING_LINEAR),
	    .square_bytes = live_of(l, SCALING_SQUARE),
	};
}
