/* compare.c - see compare.h. */
#include "diff/compare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diff/judge.h"
#include "diff/phases.h"
#include "util/num.h"

const struct series compare_no_series;

static struct diff_amount amount_of(
    const struct comparison *c, const struct series *s, const struct side_space *space)
{
	enum diff_by by = c->request->by;
	uint64_t requests = c->request->per_request && space ? space->requests : 0;
	struct diff_amount out = {.bytes = compare_per(judge_bytes(s, by), requests),
	    .error = judge_error(s, by) / (double)(requests ? requests : 1),
	    .blocks = by == DIFF_LIVE ? s->then.count : s->then.total_count,
	    .mean = s->now.total_count ? s->now.total / s->now.total_count : 0,
	    .largest = s->largest,
	    .top = judge_top(s)};

	return out;
}

/* Show a line of the side with more bytes, with the stack that acquired most. */
static void show_line(struct diff_line *p, const struct side *side, uint32_t index)
{
	const struct site *site = &side->sites.items[index];

	p->function = site->function;
	p->file = site->file;
	p->line = site->line;
	p->stack = stack_view_of(&side->feed, site->stack);
	p->frame = site->frame;
	if (p->frame >= p->stack.count)
		p->stack = (struct stack_view){NULL, 0};
}

static void line_make(const struct comparison *c, const struct pair *pair,
    const struct judgement *found, struct diff_line *p)
{
	const struct side *a = &c->sides->a, *b = &c->sides->b;

	p->kind = found->kind;
	p->reason = found->reason;
	p->change = found->change;
	p->noise = found->noise;
	p->unmatched = pair->a == SITE_NONE || pair->b == SITE_NONE;
	if (pair->b == SITE_NONE) {
		show_line(p, a, pair->a);
		p->line_before = p->line;
		if (p->kind == DIFF_SHRANK)
			p->kind = DIFF_GONE;
		return;
	}
	show_line(p, b, pair->b);
	if (pair->a == SITE_NONE) {
		if (p->kind == DIFF_GREW)
			p->kind = DIFF_NEW;
		return;
	}
	p->line_before = a->sites.items[pair->a].line;
	if (a->sites.items[pair->a].names.function != b->sites.items[pair->b].names.function)
		p->renamed = a->sites.items[pair->a].function;
}

static void add_line(struct comparison *c, uint32_t index)
{
	const struct pair *pair = &c->sides->pairs.list.items[index];
	const struct series *a = compare_series(c->a, pair->a), *b = compare_series(c->b, pair->b);
	struct ranked_line *at = &c->list[c->count];
	struct judgement found;

	if (!a->now.total_count && !b->now.total_count)
		return;
	judge_series(&c->judge, a, b, &found);
	memset(at, 0, sizeof(*at));
	line_make(c, pair, &found, &at->line);
	at->line.a = amount_of(c, a, c->a);
	at->line.b = amount_of(c, b, c->b);
	if (c->request->per_request)
		at->line.change = (int64_t)at->line.b.bytes - (int64_t)at->line.a.bytes;
	at->pair = index;
	at->excess = found.excess;
	c->count++;
}

static void add_sums(struct series_sums *sum, const struct series_sums *s)
{
	sum->live += s->live;
	sum->count += s->count;
	sum->high += s->high;
	sum->fall += s->fall;
	sum->total += s->total;
	sum->total_count += s->total_count;
	sum->squares += s->squares;
}

static void add_series(struct series *sum, struct series_parts *parts, const struct series *s)
{
	add_sums(&sum->now, &s->now);
	add_sums(&sum->then, &s->then);
	sum->largest = num_most(sum->largest, s->largest);
	sum->threads |= s->threads;
	for (size_t i = 0; s->parts && i < SERIES_PARTS; i++) {
		parts->top[i] += s->parts->top[i];
		parts->low[i] += s->parts->low[i];
	}
	sum->parts = parts;
}

static bool is_arenas(const struct diff_sides *sides, const struct pair *pair)
{
	return pair->b != SITE_NONE ? sides->b.sites.items[pair->b].arenas
				    : sides->a.sites.items[pair->a].arenas;
}

/* The line that asks for an arena is any that needs one more small object: only their sum shows a
 * change, and the line with most new ones where it may come from. */
static void add_arenas(struct comparison *c)
{
	struct series_parts parts_a = {0}, parts_b = {0};
	struct series a = {0}, b = {0};
	struct ranked_line *at = &c->list[c->count];
	struct judgement found;
	int64_t most = INT64_MIN;
	uint32_t best = SITE_NONE;

	for (uint32_t i = 0; i < c->sides->pairs.list.count; i++) {
		const struct pair *pair = &c->sides->pairs.list.items[i];
		const struct series *in_a = compare_series(c->a, pair->a);
		const struct series *in_b = compare_series(c->b, pair->b);

		if (!is_arenas(c->sides, pair) ||
		    (!in_a->now.total_count && !in_b->now.total_count))
			continue;
		add_series(&a, &parts_a, in_a);
		add_series(&b, &parts_b, in_b);
	}
	judge_arenas(&c->judge, &a, &b, &found);
	for (uint32_t i = 0; i < c->sides->pairs.list.count; i++) {
		const struct pair *pair = &c->sides->pairs.list.items[i];
		int64_t more = (int64_t)judge_bytes(compare_series(c->b, pair->b), c->request->by) -
			       (int64_t)judge_bytes(compare_series(c->a, pair->a), c->request->by);

		if (found.kind == DIFF_SHRANK)
			more = -more;
		if (!is_arenas(c->sides, pair) || (best != SITE_NONE && more <= most))
			continue;
		most = more;
		best = i;
	}
	if (best == SITE_NONE)
		return;
	memset(at, 0, sizeof(*at));
	line_make(c, &c->sides->pairs.list.items[best], &found, &at->line);
	at->line.kind = found.kind;
	at->line.unmatched = false;
	at->line.renamed = NULL;
	at->line.arenas = true;
	at->line.a = amount_of(c, &a, c->a);
	at->line.b = amount_of(c, &b, c->b);
	at->pair = SITE_NONE;
	at->excess = found.excess;
	c->count++;
}

static int by_excess(const void *x, const void *y)
{
	const struct ranked_line *a = x, *b = y;
	bool changed_a = a->line.kind != DIFF_SAME, changed_b = b->line.kind != DIFF_SAME;
	uint64_t by_a = changed_a ? a->excess : (uint64_t)llabs(a->line.change);
	uint64_t by_b = changed_b ? b->excess : (uint64_t)llabs(b->line.change);

	if (changed_a != changed_b)
		return changed_a ? -1 : 1;
	if (by_a != by_b)
		return by_a < by_b ? 1 : -1;
	return a->pair < b->pair ? -1 : a->pair > b->pair;
}

static void fill_side(const struct comparison *c, const struct side *side,
    const struct side_space *space, struct diff_space_side *out)
{
	if (!space)
		return;
	out->present = true;
	out->time_ns = space->time_ns;
	out->amount = amount_of(c, &space->sum, space);
	out->peak_bytes = space->peak;
	out->requests = side->marks ? space->requests : 0;
	out->acquired = space->count_then;
	out->layout = space->layout;
}

static void judge_whole(struct diff_space *out)
{
	double error =
	    out->a.amount.error * out->a.amount.error + out->b.amount.error * out->b.amount.error;
	double more = (double)out->b.amount.bytes - (double)out->a.amount.bytes;

	out->larger = more > 0 && more * more > 4 * error;
	out->smaller = more < 0 && more * more > 4 * error;
}

static int compare_space(struct comparison *c, compare_stacks_t *stacks)
{
	const struct diff_sides *sides = c->sides;
	struct diff_space *out = c->out;
	int rc;

	out->name = c->b ? c->b->name : c->a->name;
	fill_side(c, &sides->a, c->a, &out->a);
	fill_side(c, &sides->b, c->b, &out->b);
	judge_whole(out);
	c->list = malloc((sides->pairs.list.count + 1) * sizeof(*c->list));
	if (!c->list || compare_work(c) || (rc = compare_stacks(c)))
		return -ENOMEM;
	for (uint32_t i = 0; i < sides->pairs.list.count; i++)
		if (!is_arenas(sides, &sides->pairs.list.items[i]))
			add_line(c, i);
	add_arenas(c);
	qsort(c->list, c->count, sizeof(*c->list), by_excess);
	rc = compare_list_stacks(c, stacks);
	if (!rc)
		rc = phases_compare(c);
	if (!rc && c->request->pictures)
		rc = compare_trees(c);
	if (rc)
		return rc;
	out->lines = arena_alloc(&c->result->arena, (c->count + 1) * sizeof(*out->lines));
	if (!out->lines)
		return -ENOMEM;
	for (size_t i = 0; i < c->count; i++) {
		out->lines[out->line_count++] = c->list[i].line;
		out->changed += c->list[i].line.kind != DIFF_SAME;
	}
	return 0;
}

/* A change, for the order among all spaces. */
struct change {
	const struct diff_space *space;
	const struct diff_line *line;
	size_t order;
};

static int by_change(const void *x, const void *y)
{
	const struct change *a = x, *b = y;
	uint64_t by_a = (uint64_t)llabs(a->line->change), by_b = (uint64_t)llabs(b->line->change);

	if (by_a != by_b)
		return by_a < by_b ? 1 : -1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static int list_changes(struct diff_result *r)
{
	struct change *list;
	size_t room = 0, n = 0;

	for (size_t i = 0; i < r->space_count; i++)
		room += r->spaces[i].changed;
	list = malloc((room + 1) * sizeof(*list));
	r->changes = arena_alloc(&r->arena, (room + 1) * sizeof(*r->changes));
	r->change_spaces = arena_alloc(&r->arena, (room + 1) * sizeof(*r->change_spaces));
	if (!list || !r->changes || !r->change_spaces) {
		free(list);
		return -ENOMEM;
	}
	for (size_t i = 0; i < r->space_count; i++)
		for (size_t k = 0; k < r->spaces[i].changed; k++, n++)
			list[n] = (struct change){&r->spaces[i], &r->spaces[i].lines[k], n};
	qsort(list, n, sizeof(*list), by_change);
	for (size_t i = 0; i < n; i++) {
		r->changes[i] = list[i].line;
		r->change_spaces[i] = list[i].space;
	}
	r->change_count = n;
	free(list);
	return 0;
}

/* A space of addresses alone holds no memory. */
static bool is_asked(const struct diff_request *request, const struct side_space *space)
{
	if (request->space)
		return strcmp(request->space, space->name) == 0;
	return space->kind != SPACE_VA;
}

int compare_spaces(
    const struct diff_sides *sides, const struct diff_request *request, struct diff_result *out)
{
	const struct side *a = &sides->a, *b = &sides->b;
	compare_stacks_t stacks = {0};
	int rc = 0;

	out->spaces =
	    arena_alloc(&out->arena, (a->space_count + b->space_count) * sizeof(*out->spaces));
	if (!out->spaces)
		return -ENOMEM;
	for (size_t i = 0; i < b->space_count + a->space_count && !rc; i++) {
		struct side_space *space =
		    i < b->space_count ? b->spaces[i] : a->spaces[i - b->space_count];
		struct comparison c = {.sides = sides, .request = request, .result = out};

		if (!is_asked(request, space) ||
		    (i >= b->space_count && side_space(b, space->name)))
			continue;
		c.a = side_space(a, space->name);
		c.b = side_space(b, space->name);
		c.out = &out->spaces[out->space_count++];
		rc = compare_space(&c, &stacks);
		vec_free(&c.twins);
		free(c.list);
	}
	if (!rc)
		rc = list_changes(out);
	out->stacks = stacks.items;
	out->stack_count = stacks.count;
	return rc;
}
