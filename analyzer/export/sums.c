/* sums.c - see sums.h. */
#include "export/sums.h"

#include <errno.h>
#include <stdlib.h>

#include "util/sort.h"

/* Fill rank[stack] with the stack's place in the cheapest order; NULL if ids are as good. */
static int read_ranks(const struct model *m, uint32_t **out)
{
	const struct feed *feed = &m->feed;
	uint32_t limit = feed->stack_limit ? feed->stack_limit(feed->self) : 0;
	const uint32_t *order;
	size_t count;

	*out = NULL;
	if (m->stacks.count < FEED_LOOKS || !(count = feed_stack_order(feed, &order)))
		return 0;
	*out = calloc(limit + 1u, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		if (order[i] < limit)
			(*out)[order[i]] = (uint32_t)i + 1;
	return 0;
}

/* List the stacks that belong to call sites, by rank; those of equal rank are of equal stacks. */
static int list(const struct model *m, struct sort_item **out, size_t *count)
{
	uint32_t *rank, limit = m->feed.stack_limit ? m->feed.stack_limit(m->feed.self) : 0;
	struct sort_item *items;
	int rc = read_ranks(m, &rank);

	*count = 0;
	if (rc)
		return rc;
	items = malloc((m->stacks.count + 1) * sizeof(*items));
	for (size_t i = 0; items && i < m->stacks.count; i++) {
		const struct stack_stats *s = stack_table_number(&m->stacks, i);
		uint64_t place = rank && s->stack < limit ? rank[s->stack] : 0;

		if (model_has_callsites(m, s->kind))
			items[(*count)++] = (struct sort_item){place << 32 | s->stack, s};
	}
	free(rank);
	if (!items)
		return -ENOMEM;
	sort_items(items, *count);
	*out = items;
	return 0;
}

static void add(
    const struct model *m, enum moment at, const struct stack_stats *s, struct export_sum *sum)
{
	uint64_t live, blocks, peak, peak_blocks;
	const struct stack_stats *then;

	model_stack_stats(m, s, AT_PEAK, &peak, &peak_blocks);
	then = model_stack_stats(m, s, at, &live, &blocks);
	sum->value[MEASURE_LIVE] += live;
	sum->value[MEASURE_PEAK] += peak;
	sum->value[MEASURE_TOTAL] += stack_stats_total_bytes(then);
	sum->value[MEASURE_COUNT] += stack_stats_total_count(then);
	sum->live_blocks += blocks;
}

int sums_each(const struct model *m, enum moment at,
    int (*fn)(void *arg, uint32_t stack, const struct export_sum *sum), void *arg)
{
	struct sort_item *items = NULL;
	size_t count;
	int rc = list(m, &items, &count);

	for (size_t i = 0, next; !rc && i < count; i = next) {
		const struct stack_stats *s = items[i].value;
		struct export_sum sum = {0};
		bool any = false;

		for (next = i; next < count && items[next].key == items[i].key; next++)
			add(m, at, items[next].value, &sum);
		for (int k = 0; k < MEASURES; k++)
			any |= sum.value[k] != 0;
		if (any)
			rc = fn(arg, s->stack, &sum);
	}
	free(items);
	return rc;
}
