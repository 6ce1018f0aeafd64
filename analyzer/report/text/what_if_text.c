/* what_if_text.c - the answer of `whyoom what-if`, for a person. */
#include <inttypes.h>

#include "report/format.h"
#include "report/parts.h"
#include "util/text/fmt.h"

static void row_text(
    const struct what_if_row *row, const struct report_style *style, struct str *out)
{
	const char *words = row->change ? row->change : "as recorded";
	struct str line = {0};
	struct fmt a, b, c;

	if (row->why_not)
		str_printf(&line, "%s: does not apply: %s", words, row->why_not);
	else
		str_printf(&line, "%s: %s, %s", words, row->fits ? "fits" : "does not fit",
		    fmt_size_signed(&a, row->headroom));
	if (row->refused)
		str_printf(&line, "; refuses %s after %s, with %s in blocks",
		    fmt_size(&a, row->refusal.size), fmt_duration(&b, row->refusal.block.time_ns),
		    fmt_size(&c, row->refusal.allocated));
	if (row->note)
		str_printf(&line, "; %s", row->note);
	style_item(out, style, "  - ", 4, "%s", str_text(&line));
	str_free(&line);
}

static void match_text(
    const struct torch_match *m, const struct report_style *style, struct str *out)
{
	struct str line = {0};
	struct fmt a, b;

	if (m->kind == TORCH_MATCH_IDENTICAL)
		str_printf(&line,
		    "The model of PyTorch's allocator took the same %s segments as PyTorch, for %s "
		    "requests.",
		    fmt_count(&a, m->segments), fmt_count(&b, m->requests));
	else
		str_printf(&line,
		    "The model of PyTorch's allocator differs from PyTorch: its reserved memory is "
		    "off by up to %.1f %%, from request %s on, after %s. The rows above are %s.",
		    m->deviation * 100, fmt_count(&a, m->first.request),
		    fmt_duration(&b, m->first.time_ns),
		    m->kind == TORCH_MATCH_WITHIN ? "close" : "unreliable");
	if (m->doubt)
		str_printf(&line, " Caution: %s.", m->doubt);
	style_wrap(out, style, 2, "%s", str_text(&line));
	str_free(&line);
}

static void inputs_text(
    const struct what_if_inputs *in, const struct report_style *style, struct str *out)
{
	struct str line = {0};
	struct fmt a, b;

	if (!in->asked)
		return;
	if (in->source == WHAT_IF_BY_MARKS)
		str_printf(&line, "The longest input had %s tokens, by the program's marks.",
		    fmt_count(&a, in->longest_tokens));
	else
		str_printf(&line,
		    "The length of an input is estimated from the memory that %s takes for it.",
		    in->reference);
	if (in->fits >= 1)
		str_puts(&line, " The longest input fits.");
	else if (in->fits <= 0)
		str_puts(&line, " Even the shortest inputs do not fit.");
	else if (in->source != WHAT_IF_BY_SIZES)
		str_printf(
		    &line, " Inputs of up to %s tokens fit.", fmt_count(&a, in->fits_tokens));
	else
		str_printf(&line,
		    " Inputs of up to %.3g %% of the longest fit; --longest TOKENS gives that in "
		    "tokens.",
		    in->fits * 100);
	str_printf(&line,
	    " Of the memory in use then, %s grows with the length and %s with its square; the rest "
	    "does not depend on it.",
	    fmt_size(&a, in->linear_bytes), fmt_size(&b, in->square_bytes));
	str_putc(out, '\n');
	style_wrap(out, style, 2, "%s", str_text(&line));
	str_free(&line);
}

void what_if_text(const struct what_if_view *v, const struct report_style *style, struct str *out)
{
	struct str line = {0};
	struct fmt f;

	damage_text(&v->damage, style, out);
	str_printf(&line, "What if: %s of process %" PRIu32, v->space, v->pid);
	if (v->limit)
		str_printf(&line, ", with %s", fmt_size(&f, v->limit));
	style_title(out, style, "%s", str_text(&line));
	for (size_t i = 0; i < v->count; i++)
		row_text(&v->rows[i], style, out);
	inputs_text(&v->inputs, style, out);
	if (v->match.requests) {
		str_puts(out, "\n");
		match_text(&v->match, style, out);
	}
	str_free(&line);
}
