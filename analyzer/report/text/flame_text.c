/*
 * flame_text.c - the flame graph: a row for each depth, callers above, a box for each frame as wide
 * as its share. Whose code a box is shows in its pattern, and in its colour where there is one.
 */
#include <stdlib.h>

#include "report/flame.h"
#include "report/format.h"
#include "report/parts.h"
#include "util/num.h"
#include "util/text/fmt.h"

#define COLUMNS_MOST 1000u
#define WORTH 8u /* a row without a box of this part of the width says little */

/* A frame of a row, or several that are too narrow, from the column `first` to before `end`. */
struct box {
	uint32_t node;
	uint32_t more; /* so many frames; 0: one frame, `node` */
	unsigned first, end;
	uint64_t from; /* the sum of all left of it */
};
typedef VEC(struct box) row_t;

struct drawing {
	const struct flame_view *v;
	const struct report_style *style;
	struct str *out;
	unsigned columns;
	uint64_t all;
	bool seen[FRAME_ROLE_COUNT], more; /* for the legend */
	bool worded; /* the row has a box with some words */
};

static const struct {
	const char *unicode, *ascii;
	enum term_style ink, ground;
} looks[] = {
    [FRAME_OWN] = {"\xe2\x96\x93", "#", TERM_YELLOW, TERM_ON_YELLOW},
    [FRAME_FRAMEWORK] = {"\xe2\x96\x92", "=", TERM_BLUE, TERM_ON_BLUE},
    [FRAME_LIBRARY] = {"\xe2\x96\x91", "-", TERM_CYAN, TERM_ON_CYAN},
    [FRAME_RUNTIME] = {"\xc2\xb7", ".", TERM_DIM, TERM_ON_WHITE},
};

static const char *pattern(const struct drawing *d, enum frame_role role)
{
	return d->style->unicode ? looks[role].unicode : looks[role].ascii;
}

static const char *edge(const struct drawing *d)
{
	return d->style->unicode ? "\xe2\x96\x8c" : "|";
}

static void switch_to(const struct drawing *d, enum term_style style)
{
	str_puts(d->out, term_style(d->style->colour, style));
}

static unsigned column_of(const struct drawing *d, uint64_t sum)
{
	return (unsigned)((double)sum / (double)d->all * d->columns + 0.5);
}

/* --- rows --- */

static int add_box(const struct drawing *d, row_t *row, struct box box, uint64_t sum)
{
	box.first = column_of(d, box.from);
	box.end = column_of(d, box.from + sum);
	return box.end > box.first ? vec_push(row, box) : 0;
}

/* Adds the boxes below one of the row above. Neighbours that are narrower than a column are one. */
static int below(const struct drawing *d, const struct box *above, row_t *row)
{
	struct box few = {.from = above->from};
	uint64_t from = above->from, sum;
	size_t count;
	uint32_t *list = flame_children(d->v, above->node, &count);
	int rc = list ? 0 : -ENOMEM;

	for (size_t i = 0; i < count && !rc; i++) {
		sum = d->v->tree->nodes.items[list[i]].sums[0];
		if (column_of(d, sum) && column_of(d, from + sum) > column_of(d, from)) {
			if (few.more)
				rc = add_box(d, row, few, from - few.from);
			few = (struct box){.from = from + sum};
			if (!rc)
				rc = add_box(
				    d, row, (struct box){.node = list[i], .from = from}, sum);
		} else if (sum) {
			few.more++;
		}
		from += sum;
	}
	if (few.more && !rc)
		rc = add_box(d, row, few, from - few.from);
	free(list);
	return rc;
}

static int next_row(const struct drawing *d, const row_t *row, row_t *next)
{
	int rc = 0;

	next->count = 0;
	for (size_t i = 0; i < row->count && !rc; i++)
		if (!row->items[i].more)
			rc = below(d, &row->items[i], next);
	return rc;
}

/* --- boxes --- */

/* The words of a frame that fit into so many columns; cut if even the function does not. */
static void words(const struct drawing *d, uint32_t node, unsigned columns, struct str *to)
{
	const struct frame_node *n = &d->v->tree->nodes.items[node];
	struct str function = {0}, place = {0}, text = {0};
	struct fmt f;

	flame_names(&d->v->frames[n->frame - 1], d->style, &function, &place);
	str_printf(&text, "%s%s%s", str_text(&function), place.length ? " " : "", str_text(&place));
	if (term_columns(str_text(&text)) > columns) {
		str_clear(&text);
		str_puts(&text, str_text(&function));
	}
	fmt_percent(&f, n->sums[0], d->all);
	if (term_columns(str_text(&text)) + 2 + term_columns(f.text) <= columns)
		str_printf(&text, "  %s", f.text);
	if (columns >= 2)
		style_cell(to, d->style, str_text(&text),
		    num_least(term_columns(str_text(&text)), columns), false);
	to->failed |= text.failed || function.failed || place.failed;
	str_free(&function);
	str_free(&place);
	str_free(&text);
}

static void fill(const struct drawing *d, const char *sign, unsigned columns)
{
	while (columns--)
		str_puts(d->out, sign);
}

static void draw_box(struct drawing *d, const struct box *b)
{
	unsigned columns = b->end - b->first, used;
	struct str text = {0};
	enum frame_role role;

	if (b->more) {
		d->more = true;
		switch_to(d, TERM_DIM);
		fill(d, d->style->unicode ? "\xe2\x96\x8f" : ":", columns);
		switch_to(d, TERM_PLAIN);
		return;
	}
	role = d->v->frames[d->v->tree->nodes.items[b->node].frame - 1].role;
	d->seen[role] = true;
	d->worded |= columns >= 5 && columns >= d->columns / WORTH;
	if (columns >= 5) /* an edge, three columns of a name, and its pattern */
		words(d, b->node, columns - 2, &text);
	used = term_columns(str_text(&text));
	if (columns > 1) {
		switch_to(d, text.length ? looks[role].ground : looks[role].ink);
		str_puts(d->out, edge(d));
		str_puts(d->out, str_text(&text));
		switch_to(d, TERM_PLAIN);
		columns -= 1 + used;
	}
	switch_to(d, looks[role].ink);
	fill(d, pattern(d, role), columns);
	switch_to(d, TERM_PLAIN);
	d->out->failed |= text.failed;
	str_free(&text);
}

static void draw_row(struct drawing *d, const row_t *row)
{
	unsigned at = 0;

	for (size_t i = 0; i < row->count; i++) {
		style_blanks(d->out, row->items[i].first - at);
		draw_box(d, &row->items[i]);
		at = row->items[i].end;
	}
	style_end(d->out);
}

/* --- the picture --- */

/* The callers that all stacks share say little, and would take a row each: they are named in a
 * line. Returns the last of them; the picture begins below it. */
static uint32_t shared(struct drawing *d)
{
	const struct frame_node *nodes = d->v->tree->nodes.items;
	const char *arrow = d->style->unicode ? " \xe2\x80\xba " : " > ";
	uint32_t at = 0, next, count = 0;
	struct str text = {0};

	while ((next = nodes[at].child) && !nodes[next].next && nodes[next].child &&
	       nodes[next].sums[0] == d->all) {
		struct str function = {0}, place = {0};

		flame_names(&d->v->frames[nodes[next].frame - 1], d->style, &function, &place);
		str_printf(&text, "%s%s", count++ ? arrow : "", str_text(&function));
		str_free(&function);
		str_free(&place);
		at = next;
	}
	if (count) {
		switch_to(d, TERM_DIM);
		style_item(d->out, d->style, "all from ", 9, "%s", str_text(&text));
		switch_to(d, TERM_PLAIN);
	}
	d->out->failed |= text.failed;
	str_free(&text);
	return at;
}

static void legend(const struct drawing *d)
{
	struct str text = {0};

	for (int i = 0; i < FRAME_ROLE_COUNT; i++) {
		const char *sign = pattern(d, (enum frame_role)i);

		if (d->seen[i])
			str_printf(&text, "%s%s%s %s", text.length ? ", " : "", sign, sign,
			    frame_role_words((enum frame_role)i));
	}
	if (d->more)
		str_printf(&text, ", %s several, narrower than a column",
		    d->style->unicode ? "\xe2\x96\x8f" : ":");
	switch_to(d, TERM_DIM);
	style_wrap(d->out, d->style, 0, "%s", str_text(&text));
	switch_to(d, TERM_PLAIN);
	str_free(&text);
}

/* Draws the rows. The first *rows of them are worth showing, which end at the length *worth of the
 * text. */
static int draw_rows(
    struct drawing *d, uint32_t first, uint32_t *depth, uint32_t *rows, size_t *worth)
{
	row_t both[2] = {{0}, {0}}, *row = &both[0], *next = &both[1];
	int rc = vec_push(row, ((struct box){.node = first, .end = d->columns}));

	for (*depth = 0; !rc && !(rc = next_row(d, row, next)) && next->count; ++*depth) {
		row_t *last = row;

		row = next;
		next = last;
		if (d->v->depth && *depth >= d->v->depth)
			continue;
		d->worded = false;
		draw_row(d, row);
		if (d->worded || !*depth || !d->v->depth) {
			*rows = *depth + 1;
			*worth = d->out->length;
		}
	}
	vec_free(&both[0]);
	vec_free(&both[1]);
	return rc;
}

static int draw(struct drawing *d)
{
	uint32_t first = shared(d), depth, rows = 0;
	size_t worth = d->out->length;
	int rc = draw_rows(d, first, &depth, &rows, &worth);

	if (worth < d->out->length)
		d->out->text[d->out->length = worth] = '\0';
	if (depth > rows)
		style_wrap(d->out, d->style, 0, "%s %u more row%s%s: --depth 0",
		    d->style->unicode ? "\xe2\x80\xa6" : "...", depth - rows,
		    depth - rows == 1 ? "" : "s",
		    d->v->depth && rows < d->v->depth ? " of narrow boxes" : "");
	return rc;
}

void flame_text(const struct flame_view *v, const struct report_style *style, struct str *out)
{
	struct drawing d = {.v = v, .style = style, .out = out};

	damage_text(&v->damage, style, out);
	flame_title(v, style, out);
	if (v->call_tree) {
		call_tree_text(v, style, out);
		return;
	}
	d.all = v->tree->nodes.items[0].sums[0];
	d.columns = (unsigned)num_least(style->columns, COLUMNS_MOST);
	if (!d.all) {
		str_puts(out, "  none\n");
		return;
	}
	out->failed |= draw(&d) != 0;
	legend(&d);
}
