/*
 * call_tree_text.c - the call tree, a line a frame: callers above, callees below and indented. A
 * frame that passes all of its bytes on to one callee is followed by it without numbers and without
 * an indent, since stacks are deeper than a line is wide.
 */
#include <stdlib.h>

#include "report/flame.h"
#include "report/text/style.h"
#include "util/text/fmt.h"

/* Columns. */
#define AMOUNT 9u
#define SHARE 7u
#define SHARE_FROM 60u /* a narrower line has no share */
#define NAME_LEAST 16u /* deeper indents are not written */
#define SHARE_LEAST 0.01 /* of all: fewer bytes hardly explain a failure */
#define DEPTH_MOST 1000u /* lines are written by recursion */

struct writing {
	const struct flame_view *v;
	const struct report_style *style;
	struct str *out;
	struct str indent; /* "|  |  " */
};

struct strokes {
	const char *branch, *last, *passing, *blank, *dots;
};

static const struct strokes *strokes_of(const struct report_style *style)
{
	static const struct strokes unicode = {"\xe2\x94\x9c\xe2\x94\x80 ",
	    "\xe2\x94\x94\xe2\x94\x80 ", "\xe2\x94\x82  ", "   ", "\xe2\x80\xa6"};
	static const struct strokes ascii = {"|- ", "`- ", "|  ", "   ", "..."};

	return style->unicode ? &unicode : &ascii;
}

static unsigned numbers(const struct writing *w)
{
	return AMOUNT + (w->style->columns < SHARE_FROM ? 0 : SHARE) + 2;
}

/* The columns before a line's text: its numbers, unless `of` is UINT64_MAX, and its indent. Returns
 * the columns that are left. */
static unsigned begin(const struct writing *w, uint64_t of, const char *stroke)
{
	unsigned used = numbers(w), indent;
	struct fmt f;

	if (of == UINT64_MAX)
		style_blanks(w->out, used - 2);
	else
		style_cell(w->out, w->style, flame_amount(w->v, &f, of), AMOUNT, true);
	if (of != UINT64_MAX && used > AMOUNT + 2)
		style_cell(w->out, w->style,
		    fmt_percent(&f, of, w->v->tree->nodes.items[0].sums[0]), SHARE, true);
	str_puts(w->out, "  ");
	str_puts(w->out, term_style(w->style->colour, TERM_DIM));
	str_puts(w->out, str_text(&w->indent));
	str_puts(w->out, stroke);
	str_puts(w->out, term_style(w->style->colour, TERM_PLAIN));
	indent = term_columns(str_text(&w->indent)) + term_columns(stroke);
	return w->style->columns > used + indent ? w->style->columns - used - indent : 0;
}

/* The function in its role's colour, and its place where there is room. */
static void name(const struct writing *w, uint32_t node, unsigned columns)
{
	uint32_t frame = w->v->tree->nodes.items[node].frame;
	struct str function = {0}, place = {0};
	unsigned all, wide;

	if (!frame) {
		style_cell(w->out, w->style, "all", 3, false);
		return;
	}
	flame_names(&w->v->frames[frame - 1], w->style, &function, &place);
	all = term_columns(str_text(&function));
	wide = place.length ? term_columns(str_text(&place)) + 2 : 0;
	if (all + wide > columns && wide > columns / 2)
		wide = all + 2 < columns ? columns - all : columns / 2;
	if (all + wide > columns)
		all = columns - wide;
	if (w->v->frames[frame - 1].role == FRAME_OWN)
		str_puts(w->out, term_style(w->style->colour, TERM_BOLD));
	style_cell(w->out, w->style, str_text(&function), all, false);
	str_puts(w->out, term_style(w->style->colour, TERM_PLAIN));
	if (wide) {
		str_puts(w->out, "  ");
		style_place(w->out, w->style, str_text(&place), wide - 2);
	}
	str_free(&function);
	str_free(&place);
}

/* What is left out: so many callees, with their sum. */
struct rest {
	uint64_t count, sum;
};

static bool is_small(const struct writing *w, uint64_t sum)
{
	const struct frame_node *nodes = w->v->tree->nodes.items;

	return w->v->children && (double)sum < SHARE_LEAST * (double)nodes[0].sums[0];
}

/* The callee that gets all that the frame has, up to a rest that is too small to be shown, which is
 * added to *rest; 0: there are several, or none. */
static uint32_t only_child(const struct writing *w, uint32_t node, struct rest *rest)
{
	const struct frame_node *nodes = w->v->tree->nodes.items, *n = &nodes[node];
	uint64_t others = 0, itself = n->sums[0];
	uint32_t most = 0;

	for (uint32_t at = n->child; at; at = nodes[at].next) {
		itself -= nodes[at].sums[0];
		if (!most || nodes[at].sums[0] > nodes[most].sums[0])
			most = at;
	}
	if (!most || !nodes[most].sums[0])
		return 0;
	if (nodes[most].sums[0] < n->sums[0] &&
	    !is_small(w, n->sums[0] - nodes[most].sums[0] + rest->sum))
		return 0;
	if (is_small(w, nodes[most].sums[0]))
		return 0;
	for (uint32_t at = n->child; at; at = nodes[at].next)
		others += at != most && nodes[at].sums[0];
	rest->count += others + (itself > 0);
	rest->sum += n->sums[0] - nodes[most].sums[0];
	return most;
}

static void children(struct writing *w, uint32_t node, uint32_t depth, bool deep, struct rest rest);

/* A frame's line and all below it; `depth` frames are above it. `stroke` leads to the line, `on` to
 * those below. */
static void branch(
    struct writing *w, uint32_t node, uint32_t depth, const char *stroke, const char *on)
{
	size_t before = w->indent.length;
	uint32_t next, most = w->v->depth && w->v->depth < DEPTH_MOST ? w->v->depth : DEPTH_MOST;
	struct rest rest = {0};

	name(w, node, begin(w, w->v->tree->nodes.items[node].sums[0], stroke));
	style_end(w->out);
	str_puts(&w->indent, on);
	while (node && depth < most && (next = only_child(w, node, &rest))) {
		node = next;
		depth++;
		name(w, node, begin(w, UINT64_MAX, ""));
		style_end(w->out);
	}
	children(w, node, depth, depth >= most, rest);
	if (w->indent.text)
		w->indent.text[w->indent.length = before] = '\0';
}

static void write_rest(const struct writing *w, const struct rest *rest)
{
	const struct strokes *s = strokes_of(w->style);
	const char *unit = w->v->unit[0] == 'b' ? "byte" : "block";
	struct str text = {0};
	struct fmt a, b;

	str_printf(&text, "%s %s more, ", s->dots, fmt_count(&a, rest->count));
	str_printf(&text, "%s %s%s", fmt_count(&b, rest->sum), unit, rest->sum == 1 ? "" : "s");
	style_cell(w->out, w->style, str_text(&text), begin(w, rest->sum, s->last), false);
	style_end(w->out);
	str_free(&text);
}

/* How many of the callees are shown; `deep`: there is no room for any. */
static size_t choose(const struct writing *w, const uint32_t *list, size_t count, bool deep)
{
	const struct frame_node *nodes = w->v->tree->nodes.items;
	unsigned used = numbers(w) + 3 + term_columns(str_text(&w->indent));
	size_t shown = 0;

	if (deep || w->style->columns < used + NAME_LEAST)
		return 0;
	if (!w->v->children)
		return count;
	while (shown < count && shown < w->v->children && !is_small(w, nodes[list[shown]].sums[0]))
		shown++;
	return shown;
}

/* The callees, the largest first; what the frame has itself; and the sum of those left out. */
static void children(struct writing *w, uint32_t node, uint32_t depth, bool deep, struct rest rest)
{
	const struct frame_node *nodes = w->v->tree->nodes.items;
	const struct strokes *s = strokes_of(w->style);
	uint64_t left = nodes[node].sums[0];
	size_t count, shown;
	uint32_t *list = flame_children(w->v, node, &count);

	if (!list) {
		w->out->failed = true;
		return;
	}
	while (count && !nodes[list[count - 1]].sums[0])
		count--;
	shown = choose(w, list, count, deep);
	for (size_t i = 0; i < count; i++) {
		left -= nodes[list[i]].sums[0];
		rest.sum += i < shown ? 0 : nodes[list[i]].sums[0];
	}
	rest.count += count - shown;
	if (left && rest.count && is_small(w, left)) {
		rest.count++;
		rest.sum += left;
		left = 0;
	}
	for (size_t i = 0; i < shown; i++) {
		bool last = i + 1 == shown && !rest.count && !left;

		branch(w, list[i], depth + 1, last ? s->last : s->branch,
		    last ? s->blank : s->passing);
	}
	if (left && (shown || rest.count)) {
		unsigned columns = begin(w, left, rest.count ? s->branch : s->last);

		style_cell(w->out, w->style, "(itself)", columns < 8 ? columns : 8, false);
		style_end(w->out);
	}
	if (rest.count)
		write_rest(w, &rest);
	free(list);
}

void call_tree_text(const struct flame_view *v, const struct report_style *style, struct str *out)
{
	const struct frame_node *nodes = v->tree->nodes.items;
	struct writing w = {v, style, out, {0}};
	uint32_t first = nodes[0].child;

	if (!nodes[0].sums[0]) {
		str_puts(out, "  none\n");
		return;
	}
	/* A caller that all stacks share stands for all of them. */
	if (!first || nodes[first].next || nodes[first].sums[0] != nodes[0].sums[0])
		first = 0;
	branch(&w, first, first != 0, "", "");
	out->failed |= w.indent.failed;
	str_free(&w.indent);
}
