/*
 * lengths_fit.c - finds which stacks follow the length. Without marks, each stack with large blocks
 * is tried as the reference, whose sizes are the lengths: its block labels the worker's blocks
 * until the next one. Another stack's block may belong to the input before it or to the next one;
 * the better fit decides.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/request/lengths.h"
#include "util/num.h"
#include "util/tuned.h"

TUNED(double, BETTER_TIMES, 2.0, "a fit to the label before must halve the error to be no chance");
TUNED(double, OFF_SURE, 0.1, "blocks that are off by more tell no length");
TUNED(double, SAME_LENGTH, 1.01, "tokens of lengths that are nearer make blocks of one size");

#define TRIED 24u

/* One stack's pairs of length and size: by each block's own label, and by the previous one. */
struct gather {
	struct scaling_pairs pairs[2];
	struct {
		uint32_t label;
		double most;
	} now[2]; /* the largest block of each label */
};

static const struct lengths_label *label_at(const struct lengths *l, uint32_t label)
{
	return label ? &l->labels.items[label - 1] : NULL;
}

static double length_of(const struct lengths *l, const struct lengths_block *b)
{
	const struct lengths_label *label = label_at(l, b->label);

	if (label && l->stacks.items[b->stack].after)
		label = label_at(l, label->before);
	return label ? label->length : 0;
}

/* --- lengths from the sizes at one stack --- */

/* Label the blocks: each block of that stack is the last one of its label. 0 or -ENOMEM. */
static int label_by(struct lengths *l, uint32_t stats)
{
	uint32_t *newest = calloc(l->workers + 1u, sizeof(*newest));
	int rc = newest ? 0 : -ENOMEM;

	l->labels.count = 0;
	for (size_t i = 0; i < l->blocks.count && !rc; i++) {
		struct lengths_block *b = &l->blocks.items[i];
		uint32_t *at = &newest[b->worker];

		if (!*at) {
			rc = vec_push(&l->labels, (struct lengths_label){0});
			*at = (uint32_t)l->labels.count;
		}
		b->label = *at;
		if (rc || b->stack != stats)
			continue;
		l->labels.items[*at - 1].length = (double)b->size;
		rc = vec_push(&l->labels, (struct lengths_label){.before = *at});
		*at = (uint32_t)l->labels.count;
	}
	free(newest);
	return rc;
}

static void flush(const struct lengths *l, struct gather *g, int way)
{
	const struct lengths_label *label = label_at(l, g->now[way].label);

	if (label && way)
		label = label_at(l, label->before);
	if (label && label->length > 0)
		scaling_add(&g->pairs[way], label->length, g->now[way].most);
	g->now[way].label = 0;
}

static void fit_stacks(struct lengths *l, struct gather *gathered)
{
	int ways = l->source == LENGTHS_SIZES ? 2 : 1;

	memset(gathered, 0, l->stacks.count * sizeof(*gathered));
	for (size_t i = 0; i < l->blocks.count; i++) {
		const struct lengths_block *b = &l->blocks.items[i];
		struct gather *g = &gathered[b->stack];

		for (int way = 0; way < ways && b->label; way++) {
			if (g->now[way].label != b->label) {
				flush(l, g, way);
				g->now[way].label = b->label;
				g->now[way].most = 0;
			}
			g->now[way].most = fmax(g->now[way].most, (double)b->size);
		}
	}
	for (size_t i = 0; i < l->stacks.count; i++) {
		struct lengths_stack *s = &l->stacks.items[i];
		struct scaling_fit after;

		for (int way = 0; way < ways; way++)
			flush(l, &gathered[i], way);
		scaling_fit(&gathered[i].pairs[0], &s->fit);
		scaling_fit(&gathered[i].pairs[1], &after);
		s->after =
		    after.kind > SCALING_CONSTANT &&
		    (s->fit.kind <= SCALING_CONSTANT || after.off * BETTER_TIMES < s->fit.off);
		if (s->after)
			s->fit = after;
	}
}

/* Return the bytes of stacks that follow the lengths; a worse fit counts less. */
static double explained(const struct lengths *l)
{
	double sum = 0;

	for (size_t i = 0; i < l->stacks.count; i++) {
		const struct lengths_stack *s = &l->stacks.items[i];

		if (s->fit.kind > SCALING_CONSTANT)
			sum += (double)s->largest * (1 - 2 * s->fit.off);
	}
	return sum;
}

/* Find the stacks with the largest blocks of different sizes. */
static size_t candidates(const struct lengths *l, uint32_t *out)
{
	size_t n = 0;

	for (uint32_t i = 0; i < l->stacks.count; i++) {
		const struct lengths_stack *s = &l->stacks.items[i];
		size_t at = n < TRIED ? n++ : TRIED;

		if (s->largest < s->least + s->least / 16) {
			n -= at < TRIED;
			continue;
		}
		for (; at && l->stacks.items[out[at - 1]].largest < s->largest; at--)
			if (at < TRIED)
				out[at] = out[at - 1];
		if (at < TRIED)
			out[at] = i;
	}
	return n;
}

/* Complete the labels: an input in progress at the end of the record has no block of the reference
 * yet, so other stacks tell its length. Only a worker's last label can lack one. */
static int complete(struct lengths *l)
{
	double *lengths = calloc(l->labels.count + 1u, sizeof(*lengths));

	for (size_t i = 0; i < l->blocks.count && lengths; i++) {
		const struct lengths_block *b = &l->blocks.items[i];
		const struct lengths_stack *s = &l->stacks.items[b->stack];
		double *length = &lengths[b->label - 1];

		if (!s->after && s->fit.off <= OFF_SURE)
			*length = fmax(*length, scaling_length(&s->fit, (double)b->size));
	}
	for (size_t i = 0; i < l->labels.count && lengths; i++)
		if (l->labels.items[i].length <= 0)
			l->labels.items[i].length = lengths[i];
	free(lengths);
	return lengths ? 0 : -ENOMEM;
}

static int choose_reference(struct lengths *l, struct gather *gathered)
{
	uint32_t tried[TRIED], best = UINT32_MAX;
	size_t n = candidates(l, tried);
	double most = 0;
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		double sum;

		rc = label_by(l, tried[i]);
		if (rc)
			break;
		fit_stacks(l, gathered);
		sum = explained(l);
		if (sum > most * 1.001) {
			most = sum;
			best = tried[i];
		}
	}
	if (rc || best == UINT32_MAX) {
		l->source = LENGTHS_NONE;
		return rc;
	}
	rc = label_by(l, best);
	if (rc)
		return rc;
	fit_stacks(l, gathered);
	l->reference = l->stacks.items[best].stack;
	return complete(l);
}

/* --- stacks where longer inputs make more blocks --- */

struct held {
	uint64_t live, most;
};

/* Compute each request's peak at each stack, and its bytes before each block. 0 or -ENOMEM. */
static int hold(struct lengths *l, struct map *at, struct held **out)
{
	VEC(struct held) held = {0};
	int rc = vec_reach(&l->before, l->blocks.count);

	for (size_t i = 0; i < l->ops.count && !rc; i++) {
		uint32_t index = l->ops.items[i] >> 1;
		const struct lengths_block *b = &l->blocks.items[index];
		const struct lengths_label *label = label_at(l, b->label);
		uint64_t *slot;
		struct held *h;

		if (!label)
			continue;
		slot = map_put(at, (uint64_t)label->unit << 32 | b->stack);
		if (!slot || (!*slot && vec_push(&held, (struct held){0}))) {
			rc = -ENOMEM;
			break;
		}
		*slot = *slot ? *slot : held.count;
		h = &held.items[*slot - 1];
		if (l->ops.items[i] & 1) {
			h->live = num_less(h->live, b->size);
			continue;
		}
		l->before.items[index] = h->live;
		h->live += b->size;
		h->most = h->live > h->most ? h->live : h->most;
	}
	*out = held.items;
	return rc;
}

static int fit_held(struct lengths *l)
{
	struct scaling_pairs *pairs = calloc(l->stacks.count + 1u, sizeof(*pairs));
	struct held *held = NULL;
	struct map at = {0};
	int rc = pairs ? hold(l, &at, &held) : -ENOMEM;

	for (size_t i = 0; i < at.capacity && !rc; i++) {
		uint32_t unit = (uint32_t)(at.slots[i].key >> 32);

		if (at.used[i] && l->units.items[unit] > 0)
			scaling_add(&pairs[(uint32_t)at.slots[i].key], l->units.items[unit],
			    (double)held[at.slots[i].value - 1].most);
	}
	for (size_t i = 0; i < l->stacks.count && !rc; i++) {
		struct lengths_stack *s = &l->stacks.items[i];

		scaling_fit(&pairs[i], &s->held);
		s->many = s->fit.kind <= SCALING_CONSTANT && s->held.kind > SCALING_CONSTANT;
	}
	map_free(&at);
	free(held);
	free(pairs);
	return rc;
}

/* --- what a refused request would have acquired later --- */

/* The time since a worker made the first block of the refused one's kind for an input. */
struct episode {
	double length;
	uint64_t live, floor; /* the worker's live bytes, and those at its start */
	size_t start; /* index into ops */
	bool open;
};

/* The longest finished input tells most. */
static void close_episode(struct lengths *l, struct episode *e, size_t op)
{
	if (e->open && e->length >= l->like.length)
		l->like = (struct lengths_part){.length = e->length, .start = e->start, .end = op};
	e->open = false;
}

static void on_made(struct lengths *l, const struct lengths_block *b, struct episode *e, size_t op)
{
	double length = length_of(l, b);

	if (b->stack == l->blocks.items[l->refused - 1].stack && length > 0 &&
	    !(e->open && length < e->length * SAME_LENGTH && e->length < length * SAME_LENGTH)) {
		close_episode(l, e, op);
		*e = (struct episode){
		    .length = length, .live = e->live, .floor = e->live, .start = op, .open = true};
	}
	e->live += b->size;
}

static int find_like(struct lengths *l)
{
	struct episode *episodes = calloc(l->workers + 1u, sizeof(*episodes));
	const struct lengths_block *refused = &l->blocks.items[l->refused - 1];

	for (size_t i = 0; i < l->ops.count && episodes; i++) {
		const struct lengths_block *b = &l->blocks.items[l->ops.items[i] >> 1];
		struct episode *e = &episodes[b->worker];

		if (!(l->ops.items[i] & 1)) {
			on_made(l, b, e, i);
			if (b != refused)
				continue;
			l->tried = (struct lengths_part){
			    .length = e->length, .start = e->start, .end = i + 1};
			if (!e->open)
				l->tried.start = i;
			break;
		}
		e->live = num_less(e->live, b->size);
		/* All of that input's blocks were freed. */
		if (e->open && e->live <= e->floor)
			close_episode(l, e, i);
	}
	free(episodes);
	return episodes ? 0 : -ENOMEM;
}

/* --- everything together --- */

/* Count live bytes. A device's record goes on after the refused request. */
static void count_live(struct lengths *l)
{
	uint64_t live = 0, most = 0;
	size_t end = l->ops.count;

	for (size_t i = 0; i < l->ops.count; i++) {
		const struct lengths_block *b = &l->blocks.items[l->ops.items[i] >> 1];

		live = l->ops.items[i] & 1 ? num_less(live, b->size) : live + b->size;
		if (l->refused ? b == &l->blocks.items[l->refused - 1] : live > most) {
			most = live;
			end = i + 1;
		}
	}
	for (size_t i = 0; i < end; i++) {
		const struct lengths_block *b = &l->blocks.items[l->ops.items[i] >> 1];
		struct lengths_stack *s = &l->stacks.items[b->stack];

		s->live = l->ops.items[i] & 1 ? num_less(s->live, b->size) : s->live + b->size;
	}
}

int lengths_judge(struct lengths *l)
{
	struct gather *gathered = calloc(l->stacks.count + 1u, sizeof(*gathered));
	int rc = gathered ? 0 : -ENOMEM;

	if (!rc && l->source == LENGTHS_SIZES)
		rc = choose_reference(l, gathered);
	else if (!rc)
		fit_stacks(l, gathered);
	free(gathered);
	if (!rc && l->source == LENGTHS_MARKED)
		rc = fit_held(l);
	for (size_t i = 0; i < l->labels.count && l->source != LENGTHS_NONE; i++)
		l->longest = fmax(l->longest, l->labels.items[i].length);
	if (!rc && l->refused)
		rc = find_like(l);
	if (!rc)
		count_live(l);
	return rc;
}

/* --- shorter inputs --- */

uint64_t lengths_size(const struct lengths *l, size_t block, double most)
{
	const struct lengths_block *b = &l->blocks.items[block];
	const struct lengths_stack *s = &l->stacks.items[b->stack];
	double length = length_of(l, b), unit;

	if (s->many && b->label) {
		unit = l->units.items[l->labels.items[b->label - 1].unit];
		/* The first blocks are those of the input's beginning. */
		if (unit > most && (double)(l->before.items[block] + b->size) >
				       scaling_at(&s->held, most) * (1 + s->held.off))
			return 0;
	}
	return length > most ? (uint64_t)((double)b->size * scaling_ratio(&s->fit, most, length))
			     : b->size;
}

/* Return how many bytes that stretch would have added since its start with an input of that length:
 * at most, or at its end. */
static double hold_part(
    const struct lengths *l, const struct lengths_part *part, double wanted, bool at_most)
{
	uint32_t worker = l->blocks.items[l->ops.items[part->start] >> 1].worker;
	double live = 0, most = 0;

	for (size_t i = part->start; i < part->end; i++) {
		size_t block = l->ops.items[i] >> 1;
		const struct lengths_block *b = &l->blocks.items[block];
		const struct scaling_fit *f = &l->stacks.items[b->stack].fit;
		double length = length_of(l, b), size = (double)b->size;

		if (b->worker != worker)
			continue;
		if (f->kind > SCALING_CONSTANT && length > 0 && scaling_at(f, length) > 0)
			size *= scaling_at(f, wanted) / scaling_at(f, length);
		live += l->ops.items[i] & 1 ? -size : size;
		most = fmax(most, live);
	}
	return at_most ? most : live;
}

uint64_t lengths_further(const struct lengths *l, double most)
{
	double further;

	if (l->like.length <= 0 || l->tried.length <= 0)
		return 0;
	most = fmin(most, l->tried.length);
	further = hold_part(l, &l->like, most, true) - hold_part(l, &l->tried, most, false);
	return further > 0 ? (uint64_t)further : 0;
}

uint64_t lengths_less(
    const struct lengths *l, double most, bool (*counts)(void *arg, uint32_t stack), void *arg)
{
	uint64_t less = 0;

	for (size_t i = 0; i < l->ops.count; i++) {
		size_t block = l->ops.items[i] >> 1;
		const struct lengths_block *b = &l->blocks.items[block];
		uint64_t by;

		if (b->refused || (counts && !counts(arg, l->stacks.items[b->stack].stack)))
			continue;
		by = b->size - lengths_size(l, block, most);
		less = l->ops.items[i] & 1 ? num_less(less, by) : less + by;
	}
	return less;
}
