/*
 * diff_page.c - the data of a comparison's page: for each space its curves by phase, its lines, and
 * the stacks of both sides as one tree. docs/page-data.md has the layout.
 */
#include <stdlib.h>

#include "report/html/frame_list.h"
#include "report/html/html.h"
#include "report/html/tree.h"
#include "util/num.h"

#define DIFF_NODES 20000u /* of all trees together */
#define DIFF_SPACES 12u /* the host, and others in their order */
#define DIFF_LINES 500u /* of a space; the rest is one row */
#define LINE_FRAMES 60u /* the innermost of a line's stack */

struct data {
	const struct diff_result *r;
	struct block_texts texts;
	struct frame_list frames;
	struct str block;
};

static void add(struct data *d, enum block_section section, struct str *body)
{
	block_section(&d->block, section, body);
	str_free(body);
	*body = (struct str){0};
}

static void write_side(struct data *d, const struct diff_side_view *v, struct str *to)
{
	block_text(&d->texts, to, v->cmdline ? v->cmdline : v->path);
	block_text(&d->texts, to, v->at);
	block_number(to, v->pid);
}

static void write_sides(struct data *d, struct str *to)
{
	block_number(to, (d->r->per_request ? 1u : 0) | (d->r->one_run ? 2u : 0));
	block_text(&d->texts, to, diff_by_name(d->r->by));
	write_side(d, &d->r->a, to);
	write_side(d, &d->r->b, to);
	block_number(to, num_least(d->r->space_count, DIFF_SPACES));
}

/* The limit of a space on one side; 0: none is known. */
static uint64_t limit_of(const struct diff_result *r, const struct diff_space *s, bool second)
{
	for (size_t i = 0; i < r->fact_count; i++) {
		const struct diff_fact *f = &r->facts[i];

		if (f->kind == DIFF_LIMIT && f->number && str_same(f->space, s->name) &&
		    (second ? f->b_known : f->a_known))
			return (uint64_t)(second ? f->b_value : f->a_value);
	}
	return 0;
}

static void write_space_side(
    const struct data *d, const struct diff_space *s, bool second, struct str *to)
{
	const struct diff_space_side *v = second ? &s->b : &s->a;

	block_number(to, v->present);
	block_number(to, v->time_ns);
	block_number(to, v->amount.bytes);
	block_number(to, (uint64_t)v->amount.error);
	block_number(to, v->peak_bytes);
	block_number(to, v->requests);
	block_number(to, limit_of(d->r, s, second));
}

static void write_curve(const struct diff_curve *c, struct str *to)
{
	struct block_column column = {to, 0};

	block_number(to, c->present);
	if (!c->present)
		return;
	block_number(to, c->from_ns);
	block_number(to, c->until_ns - c->from_ns);
	block_number(to, c->last);
	block_number(to, c->points);
	for (uint32_t i = 0; i < c->points; i++)
		block_next(&column, c->at[i]);
}

static void write_phases(struct data *d, const struct diff_space *s, struct str *to)
{
	block_number(to, s->phase_count);
	block_number(to, DIFF_POINTS);
	for (size_t i = 0; i < s->phase_count; i++) {
		block_text(&d->texts, to, s->phases[i].name);
		write_curve(&s->phases[i].a, to);
		write_curve(&s->phases[i].b, to);
	}
}

static int write_stack(struct data *d, const struct diff_line *p, struct str *to)
{
	size_t shown = num_least(p->stack.count, LINE_FRAMES);

	block_number(to, shown);
	block_number(to, p->stack.count - shown);
	for (size_t i = 0; i < shown; i++) {
		const struct symbol *s = &p->stack.symbols[p->stack.count - 1 - i];
		uint32_t frame =
		    frame_list_add(&d->frames, &d->texts, s, frame_list_flags(s, FRAME_RUNTIME));

		if (frame == FRAME_NONE)
			return -ENOMEM;
		block_number(to, frame);
	}
	return 0;
}

static void write_amount(const struct diff_amount *a, const uint64_t *bytes, struct str *to)
{
	for (unsigned i = 0; i < DIFF_MEASURES; i++)
		block_number(to, bytes[i]);
	block_number(to, a->blocks);
	block_number(to, a->mean);
	block_number(to, a->top);
	block_number(to, (uint64_t)a->error);
}

static int write_line(struct data *d, const struct diff_line *p, struct str *to)
{
	block_text(&d->texts, to, p->function);
	block_text(&d->texts, to, p->file);
	block_number(to, p->line);
	block_number(to, p->line_before);
	block_text(&d->texts, to, p->renamed);
	block_number(to, p->kind);
	block_number(to, p->reason);
	block_number(to, (p->arenas ? 1u : 0) | (p->unmatched ? 2u : 0));
	block_signed(to, p->change);
	block_number(to, p->noise);
	write_amount(&p->a, p->a_bytes, to);
	write_amount(&p->b, p->b_bytes, to);
	return write_stack(d, p, to);
}

/* Changes come first, then by difference: what is cut differs least. */
static int write_lines(struct data *d, const struct diff_space *s, struct str *to)
{
	size_t count = num_least(s->line_count, DIFF_LINES);
	uint64_t a[DIFF_MEASURES] = {0}, b[DIFF_MEASURES] = {0};
	int rc = 0;

	block_number(to, count);
	block_number(to, s->line_count - count);
	for (size_t i = 0; i < count && !rc; i++)
		rc = write_line(d, &s->lines[i], to);
	for (size_t i = count; i < s->line_count; i++)
		for (unsigned k = 0; k < DIFF_MEASURES; k++) {
			a[k] += s->lines[i].a_bytes[k];
			b[k] += s->lines[i].b_bytes[k];
		}
	for (unsigned k = 0; k < DIFF_MEASURES; k++)
		block_number(to, a[k]);
	for (unsigned k = 0; k < DIFF_MEASURES; k++)
		block_number(to, b[k]);
	return rc;
}

/* What no node shows has no number in the page. */
#define FRAME_UNSEEN 0x80000000u

static void write_sums(const struct diff_node *n, uint64_t *sums)
{
	for (unsigned k = 0; k < DIFF_MEASURES; k++) {
		sums[k] += n->a[k];
		sums[DIFF_MEASURES + k] += n->b[k];
	}
	sums[2 * DIFF_MEASURES] += n->changed;
}

static bool is_seen(const struct frame_tree *t, const struct frame_node *n)
{
	const struct frame_node *root = &t->nodes.items[0];

	for (unsigned k = 0; k < t->measures; k++)
		if (n->sums[k] && (double)n->sums[k] >= TREE_SHARE_MIN * (double)root->sums[k])
			return true;
	return false;
}

/* The same tree, with the page's numbers of its frames. */
static int number_frames(struct data *d, const struct diff_tree *from, struct frame_tree *t)
{
	int rc = 0;

	for (size_t i = 1; i < t->nodes.count && !rc; i++) {
		struct frame_node *n = &t->nodes.items[i];
		const struct diff_frame *f = &from->frames[n->frame - 1 - FRAME_UNSEEN];
		uint32_t number;

		if (!is_seen(t, n))
			continue;
		number = frame_list_add(
		    &d->frames, &d->texts, &f->symbol, frame_list_flags(&f->symbol, f->role));
		if (number == FRAME_NONE)
			rc = -ENOMEM;
		n->frame = 1 + number;
	}
	return rc;
}

static int add_nodes(const struct diff_tree *from, struct frame_tree *t)
{
	uint32_t *to = calloc(from->node_count + 1, sizeof(*to));
	int rc = to ? frame_tree_init(t, 2 * DIFF_MEASURES + 1) : -ENOMEM;

	for (size_t i = 0; i < from->node_count && !rc; i++) {
		const struct diff_node *n = &from->nodes[i];

		if (i)
			rc =
			    frame_tree_child(t, to[n->parent], FRAME_UNSEEN + n->frame + 1, &to[i]);
		if (!rc)
			write_sums(n, t->nodes.items[to[i]].sums);
	}
	free(to);
	return rc;
}

static int write_tree(struct data *d, const struct diff_space *s, struct str *to)
{
	struct frame_tree t = {0};
	int rc = add_nodes(&s->tree, &t);

	if (!rc) {
		frame_tree_sum(&t);
		rc = number_frames(d, &s->tree, &t);
	}
	if (!rc)
		tree_write(
		    &t, (uint32_t)(DIFF_NODES / num_least(d->r->space_count, DIFF_SPACES)), to);
	frame_tree_fini(&t);
	return rc;
}

static int add_space(struct data *d, const struct diff_space *s)
{
	struct str body = {0};
	int rc;

	block_text(&d->texts, &body, s->name);
	write_space_side(d, s, false, &body);
	write_space_side(d, s, true, &body);
	add(d, SECTION_DIFF_SPACE, &body);
	write_phases(d, s, &body);
	add(d, SECTION_PHASES, &body);
	rc = write_lines(d, s, &body);
	add(d, SECTION_LINES, &body);
	if (!rc)
		rc = write_tree(d, s, &body);
	add(d, SECTION_UNION, &body);
	return rc;
}

void diff_data_html(const struct diff_result *r, struct str *out)
{
	struct data d = {.r = r};
	struct str body = {0}, texts = {0};
	int rc = 0;

	write_sides(&d, &body);
	add(&d, SECTION_SIDES, &body);
	for (size_t i = 0; i < r->space_count && i < DIFF_SPACES && !rc; i++)
		rc = add_space(&d, &r->spaces[i]);
	frame_list_write(&d.frames, &body);
	add(&d, SECTION_FRAMES, &body);
	block_texts_write(&d.texts, &texts);
	add(&d, SECTION_TEXTS, &texts);
	d.block.failed |= rc != 0;
	block_pack(&d.block, out);
	block_texts_fini(&d.texts);
	frame_list_fini(&d.frames);
	str_free(&d.block);
}
