/* model_stacks.c - by which stack and kind a site of the model is found; see model.h. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/heap/maps.h"

void model_stack_stats_list_close(struct model *m)
{
	for (int k = 0; k < STACK_STATS_KINDS; k++) {
		for (uint32_t i = 0; m->pages[k] && i < m->limits[k] / STACK_STATS_PAGE; i++)
			free(m->pages[k][i]);
		free(m->pages[k]);
		m->pages[k] = NULL;
	}
}

static int grow_table(struct model *m, uint32_t stack, enum stack_stats_kind kind)
{
	uint64_t limit = m->limits[kind] ? m->limits[kind] : STACK_STATS_PAGE;
	uint32_t had = m->limits[kind] / STACK_STATS_PAGE;
	struct stack_stats_page **grown;

	while (limit <= stack)
		limit *= 2;
	grown = realloc(m->pages[kind], limit / STACK_STATS_PAGE * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memset(
	    grown + had, 0, (limit / STACK_STATS_PAGE - had) * sizeof(struct stack_stats_page *));
	m->pages[kind] = grown;
	m->limits[kind] = (uint32_t)limit;
	return 0;
}

struct stack_stats *model_stack_stats_at(
    const struct model *m, uint32_t stack, enum stack_stats_kind kind)
{
	if (stack < m->limits[kind] && m->pages[kind])
		return model_stack_stats_open(m, stack, kind);
	for (size_t i = 0; i < m->stack_stats_count && stack < m->limits[kind]; i++) {
		struct stack_stats *s = model_stack_stats_number(m, i);

		if (s->stack == stack && s->kind == kind)
			return s;
	}
	return NULL;
}

int model_stack_stats_of(
    struct model *m, uint32_t stack, enum stack_stats_kind kind, struct stack_stats **out)
{
	struct stack_stats_page **page;
	uint32_t *slot;

	stack = model_stack_of(stack);
	if (stack >= m->limits[kind]) {
		int rc = grow_table(m, stack, kind);
		if (rc)
			return rc;
	}
	assert(m->pages[kind]);
	page = &m->pages[kind][stack / STACK_STATS_PAGE];
	if (!*page)
		*page = calloc(1, sizeof(**page));
	if (!*page)
		return -ENOMEM;
	slot = &(*page)->stats_list[stack % STACK_STATS_PAGE];
	if (!*slot) {
		if (m->stack_stats_count == m->batches.count * STACK_STATS_BATCH) {
			struct stack_stats *batch;

			if (vec_reserve(&m->batches, m->batches.count + 1) ||
			    !(batch = malloc(STACK_STATS_BATCH * sizeof(*batch))))
				return -ENOMEM;
			m->batches.items[m->batches.count++] = batch;
		}
		stack_stats_init(model_stack_stats_number(m, m->stack_stats_count), stack, kind);
		*slot = (uint32_t)++m->stack_stats_count;
	}
	*out = model_stack_stats_number(m, *slot - 1);
	return 0;
}
