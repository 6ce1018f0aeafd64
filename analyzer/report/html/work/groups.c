/* groups.c - see groups.h. */
#include "report/html/work/groups.h"

#include <errno.h>
#include <stdlib.h>

#include "util/num.h"

/* While they are gathered: above it, the stacks of all but the largest requests are dropped. */
#define PRUNE_CELLS (GROUPS_CELLS / 2)

void groups_fini(struct groups *g)
{
	for (unsigned k = 0; k < GROUP_KINDS; k++)
		vec_free(&g->list[k]);
	vec_free(&g->cells);
	map_free(&g->by_key);
}

static uint64_t key_of(enum group_kind kind, uint32_t group, uint32_t stack)
{
	return (uint64_t)kind << 62 | (uint64_t)(group & 0x3fffffff) << 32 | stack;
}

static int new_cell(struct groups *g, struct work_group *in, uint64_t key, uint64_t *slot)
{
	struct group_cell cell = {.group = (uint32_t)(key >> 32) & 0x3fffffff,
	    .stack = (uint32_t)key,
	    .next = in->cells,
	    .epoch = in->epoch};

	if (g->spare) {
		*slot = g->spare;
		g->spare = g->cells.items[*slot - 1].next;
		g->cells.items[*slot - 1] = cell;
	} else {
		if (vec_push(&g->cells, cell))
			return -ENOMEM;
		*slot = g->cells.count;
	}
	in->cells = (uint32_t)*slot;
	return 0;
}

/* Find or create the cell of a group at a stack, ready to change: its sum at the last peak is kept.
 * 0 or -ENOMEM. */
static int cell_of(struct groups *g, enum group_kind kind, struct work_group *in, uint32_t stack,
    uint32_t like, struct group_cell **out)
{
	uint32_t number = (uint32_t)(in - g->list[kind].items);
	uint64_t key = key_of(kind, number, stack), *slot;
	struct group_cell *c;

	c = g->last[kind] ? &g->cells.items[g->last[kind] - 1] : NULL;
	if (!c || c->group != number || c->stack != stack) {
		slot = map_find(&g->by_key, key);
		if (!slot && groups_full(g))
			key = key_of(kind, number, like);
		if (!slot)
			slot = map_put(&g->by_key, key);
		if (!slot || (!*slot && new_cell(g, in, key, slot)))
			return -ENOMEM;
		c = &g->cells.items[*slot - 1];
		g->last[kind] = (uint32_t)*slot;
	}
	if (c->epoch != in->epoch) {
		c->measures[AT_ITS_PEAK] = c->live;
		c->epoch = in->epoch;
	}
	*out = c;
	return 0;
}

static void drop(struct groups *g, struct work_group *in)
{
	while (in->cells) {
		struct group_cell *c = &g->cells.items[in->cells - 1];
		uint32_t next = c->next;

		map_remove(&g->by_key, key_of(GROUP_REQUEST, c->group, c->stack));
		c->next = g->spare;
		g->spare = in->cells;
		in->cells = next;
	}
	in->dropped = true;
}

/* What it held at most and what it leaves behind. */
static uint64_t size_of(const struct groups *g, const struct work_group *in)
{
	return in->peak + (g->taken ? in->moment : in->live);
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x < y) - (x > y);
}

/* Drop the stacks of all requests but the `keep` largest. 0 or -ENOMEM. */
static int prune(struct groups *g, size_t keep)
{
	size_t n = g->list[GROUP_REQUEST].count, alike = 0; /* alike: those as large as the last */
	uint64_t *sizes = malloc((n + 1) * sizeof(*sizes)), least;

	if (!sizes)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sizes[i] = g->list[GROUP_REQUEST].items[i].dropped
			       ? 0
			       : size_of(g, &g->list[GROUP_REQUEST].items[i]);
	if (n)
		qsort(sizes, n, sizeof(*sizes), by_size);
	least = n > keep ? sizes[keep - 1] : 0;
	for (size_t i = 0; i < keep && i < n; i++)
		alike += sizes[i] == least;
	free(sizes);
	for (size_t i = 0; i < n; i++) {
		struct work_group *in = &g->list[GROUP_REQUEST].items[i];

		if (size_of(g, in) < least || (size_of(g, in) == least && !alike))
			drop(g, in);
		else
			alike -= size_of(g, in) == least && alike;
	}
	g->last[GROUP_REQUEST] = 0;
	return 0;
}

/* When there are many, drop those that will not be shown; a few more are kept than are needed, as
 * those that have just begun may still grow. */
static int make_room(struct groups *g)
{
	int rc;

	if (g->by_key.count < num_most(g->prune_at, PRUNE_CELLS))
		return 0;
	rc = prune(g, 8 * (size_t)GROUPS_REQUESTS);
	g->prune_at = g->by_key.count + PRUNE_CELLS / 4;
	return rc;
}

static struct work_group *group_of(struct groups *g, enum group_kind kind, uint32_t number)
{
	if (vec_reach(&g->list[kind], (size_t)number + 1))
		return NULL;
	return &g->list[kind].items[number];
}

int groups_acquired(struct groups *g, const struct group_of *of, uint32_t stack, uint64_t bytes,
    uint64_t count, uint64_t time_ns)
{
	int rc = make_room(g);

	for (unsigned k = 0; k < GROUP_KINDS && !rc; k++) {
		struct group_cell *c = NULL;
		struct work_group *in;

		if (of->number[k] == GROUP_NONE)
			continue;
		in = group_of(g, (enum group_kind)k, of->number[k]);
		if (!in)
			return -ENOMEM;
		if (!in->dropped)
			rc = cell_of(g, (enum group_kind)k, in, stack, of->like, &c);
		if (c) {
			c->live += bytes;
			c->measures[IN_ALL] += bytes;
			c->measures[COUNTED] += count;
		}
		if (!in->count)
			in->first_ns = time_ns;
		in->last_ns = time_ns;
		in->live += bytes;
		in->total += bytes;
		in->count += count;
		if (in->live > in->peak) {
			in->peak = in->live;
			in->peak_ns = time_ns;
			in->epoch++;
		}
	}
	return rc;
}

/* What was never acquired is damage. */
static struct work_group *known_group(
    struct groups *g, const struct group_of *of, enum group_kind kind)
{
	return of->number[kind] < g->list[kind].count ? &g->list[kind].items[of->number[kind]]
						      : NULL;
}

int groups_released(struct groups *g, const struct group_of *of, uint32_t stack, uint64_t bytes)
{
	int rc = 0;

	for (unsigned k = 0; k < GROUP_KINDS && !rc; k++) {
		struct work_group *in = known_group(g, of, (enum group_kind)k);
		struct group_cell *c = NULL;

		if (!in)
			continue;
		if (!in->dropped)
			rc = cell_of(g, (enum group_kind)k, in, stack, of->like, &c);
		if (c)
			c->live = num_less(c->live, bytes);
		in->live = num_less(in->live, bytes);
	}
	return rc;
}

int groups_temporary(struct groups *g, const struct group_of *of, uint32_t stack, uint64_t bytes)
{
	int rc = 0;

	for (unsigned k = 0; k < GROUP_KINDS && !rc; k++) {
		struct work_group *in = known_group(g, of, (enum group_kind)k);
		struct group_cell *c = NULL;

		if (in && !in->dropped)
			rc = cell_of(g, (enum group_kind)k, in, stack, of->like, &c);
		if (c)
			c->measures[TEMPORARY] += bytes;
	}
	return rc;
}

void groups_take(struct groups *g)
{
	g->taken = true;
	for (unsigned k = 0; k < GROUP_KINDS; k++)
		for (size_t i = 0; i < g->list[k].count; i++)
			g->list[k].items[i].moment = g->list[k].items[i].live;
	for (size_t i = 0; i < g->cells.count; i++)
		g->cells.items[i].measures[AT_THE_MOMENT] = g->cells.items[i].live;
}

int groups_end(struct groups *g)
{
	int rc = prune(g, GROUPS_REQUESTS);

	for (unsigned k = 0; k < GROUP_KINDS; k++)
		for (size_t i = 0; i < g->list[k].count; i++) {
			const struct work_group *in = &g->list[k].items[i];

			for (uint32_t at = in->cells; at; at = g->cells.items[at - 1].next) {
				struct group_cell *c = &g->cells.items[at - 1];

				if (c->epoch != in->epoch)
					c->measures[AT_ITS_PEAK] = c->live;
			}
		}
	return rc;
}
