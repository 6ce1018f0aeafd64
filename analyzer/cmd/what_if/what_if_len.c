/*
 * what_if_len.c - `what-if --max-len`: inputs of at most so many tokens, or of at most a share of
 * the longest one that was recorded, and the longest that would still have fitted.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cmd/what_if/what_if.h"
#include "report/text/style.h"
#include "util/text/fmt.h"
#include "util/text/json.h"

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

int what_if_lengths_read(struct what_if_lengths *l, struct feed feed, const char *space,
    uint64_t moment_ns, const struct callsites *callsites, struct err *err)
{
	int rc = lengths_read(feed, space, moment_ns, &l->of, err);

	if (rc)
		return rc;
	if (l->of.source == LENGTHS_MARKED && l->tokens)
		return err_set(err, WHAT_IF_NOT_HERE,
		    "--longest: the program said itself how long its inputs were, up to %.0f "
		    "tokens",
		    l->of.longest);
	if (l->of.source == LENGTHS_NONE || l->of.longest <= 0)
		return err_set(err, WHAT_IF_NOT_HERE,
		    "nothing that was made there is larger for one input than for another");
	if (l->of.source == LENGTHS_SIZES)
		name_reference(l, &feed, callsites);
	return 0;
}

void what_if_lengths_fini(struct what_if_lengths *l)
{
	lengths_fini(&l->of);
}

/* --- how long may they be --- */

int what_if_lengths_search(struct what_if_lengths *l, what_if_fit fit, void *arg, struct err *err)
{
	double step = 1, most[WHAT_IF_TRIES];
	bool fits[WHAT_IF_TRIES];
	int rc;

	most[0] = l->of.longest;
	rc = fit(arg, most, fits, 1, err);
	l->fits = !rc && fits[0] ? 1 : 0;
	/* Between what fits and the next that does not, twice over. */
	for (int round = 0; round < 2 && !rc && l->fits < 1; round++) {
		double from = l->fits;

		step /= WHAT_IF_TRIES + 1;
		for (uint32_t i = 0; i < WHAT_IF_TRIES; i++)
			most[i] = (from + step * (i + 1)) * l->of.longest;
		rc = fit(arg, most, fits, WHAT_IF_TRIES, err);
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

void what_if_lengths_settle(
    const struct what_if_lengths *l, struct what_if_change *changes, size_t count)
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

/* --- words --- */

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

void what_if_lengths_json(const struct what_if_lengths *l, struct json *j)
{
	bool known = in_tokens(l);

	if (!l->asked) {
		json_null(j, "lengths");
		return;
	}
	json_object(j, "lengths");
	json_string(j, "from",
	    l->of.source == LENGTHS_MARKED ? "marks"
	    : l->tokens			   ? "longest"
					   : "sizes");
	json_string(j, "reference", l->reference[0] ? l->reference : NULL);
	json_u64_or_null(j, "longest_tokens", what_if_lengths_tokens(l, 1), known);
	json_real(j, "fits_share", l->fits, 6);
	json_u64_or_null(j, "fits_tokens", what_if_lengths_tokens(l, l->fits), known);
	json_u64(j, "linear_bytes", live_of(l, SCALING_LINEAR));
	json_u64(j, "square_bytes", live_of(l, SCALING_SQUARE));
	json_object_end(j);
}

void what_if_lengths_text(
    const struct what_if_lengths *l, const struct report_style *style, struct str *out)
{
	struct str line = {0};
	struct fmt a, b;

	if (!l->asked)
		return;
	if (l->of.source == LENGTHS_MARKED)
		str_printf(&line, "The longest input had %s tokens, as the program said.",
		    fmt_count(&a, what_if_lengths_tokens(l, 1)));
	else
		str_printf(
		    &line, "An input is taken to be as long as what %s made for it.", l->reference);
	if (l->fits >= 1)
		str_puts(&line, " The longest fits.");
	else if (l->fits <= 0)
		str_puts(&line, " However short they are, it does not fit.");
	else if (in_tokens(l))
		str_printf(&line, " It fits up to %s tokens.",
		    fmt_count(&a, what_if_lengths_tokens(l, l->fits)));
	else
		str_printf(&line,
		    " It fits up to %.3g %% of the longest; with --longest TOKENS that is said in "
		    "tokens.",
		    l->fits * 100);
	str_printf(&line,
	    " Of what lived then, %s follows the length and %s its square; the rest stays.",
	    fmt_size(&a, live_of(l, SCALING_LINEAR)), fmt_size(&b, live_of(l, SCALING_SQUARE)));
	str_puts(out, "\n");
	style_wrap(out, style, 2, str_text(&line));
	str_free(&line);
}
