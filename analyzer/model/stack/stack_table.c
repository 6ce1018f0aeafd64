#include "model/stack/stack_table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void stack_table_close(struct stack_table *t)
{
	for (int k = 0; k < STACK_STATS_KINDS; k++) {
		for (uint32_t i = 0; t->pages[k] && i < t->limits[k] / STACK_TABLE_PAGE; i++)
			free(t->pages[k][i]);
		free(t->pages[k]);
		t->pages[k] = NULL;
	}
	vec_free(&t->marked);
}

void stack_table_fini(struct stack_table *t)
{
	for (size_t i = 0; i < t->count; i++)
		stack_stats_fini(stack_table_number(t, i));
	stack_table_close(t);
	for (size_t i = 0; i < t->batches.count; i++)
		free(t->batches.items[i]);
	vec_free(&t->batches);
}

static int grow_table(struct stack_table *t, uint32_t stack, enum stack_stats_kind kind)
{
	uint64_t limit = t->limits[kind] ? t->limits[kind] : STACK_TABLE_PAGE;
	uint32_t had = t->limits[kind] / STACK_TABLE_PAGE;
	struct stack_table_page **grown;

	while (limit <= stack)
		limit *= 2;
	grown = realloc(t->pages[kind], limit / STACK_TABLE_PAGE * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memset(
	    grown + had, 0, (limit / STACK_TABLE_PAGE - had) * sizeof(struct stack_table_page *));
	t->pages[kind] = grown;
	t->limits[kind] = (uint32_t)limit;
	return 0;
}

int stack_table_get(
    struct stack_table *t, uint32_t stack, enum stack_stats_kind kind, struct stack_stats **out)
{
	struct stack_table_page **page;
	uint32_t *number;

	stack = stack_table_id(stack);
	if (stack >= t->limits[kind]) {
		int rc = grow_table(t, stack, kind);
		if (rc)
			return rc;
	}
	assert(t->pages[kind]);
	page = &t->pages[kind][stack / STACK_TABLE_PAGE];
	if (!*page)
		*page = calloc(1, sizeof(**page));
	if (!*page)
		return -ENOMEM;
	number = &(*page)->numbers[stack % STACK_TABLE_PAGE];
	if (!*number) {
		if (t->count == t->batches.count * STACK_TABLE_BATCH) {
			struct stack_stats *batch;

			if (vec_reserve(&t->batches, t->batches.count + 1) ||
			    !(batch = malloc(STACK_TABLE_BATCH * sizeof(*batch))))
				return -ENOMEM;
			t->batches.items[t->batches.count++] = batch;
		}
		stack_stats_init(stack_table_number(t, t->count), stack, kind);
		*number = (uint32_t)++t->count;
	}
	*out = stack_table_number(t, *number - 1);
	return 0;
}

/* Stacks that changed since the high-water mark are listed, so that the next mark finds them, up to
 * this part of all stacks; beyond that, visiting all stacks is as fast. */
#define MARKED_PART 16u
#define MARKED_LEAST 4096u

int stack_table_mark(struct stack_table *t, struct stack_stats *s)
{
	stack_stats_mark_peak(s);
	if (t->marked.count >= t->count / MARKED_PART + MARKED_LEAST)
		t->marked_more = true;
	else if (vec_push(&t->marked, s))
		return -ENOMEM;
	return 0;
}

void stack_table_peak(struct stack_table *t)
{
	for (size_t i = 0; i < (t->marked_more ? t->count : 0); i++)
		stack_table_number(t, i)->marked = false;
	for (size_t i = 0; i < t->marked.count; i++)
		t->marked.items[i]->marked = false;
	t->marked.count = 0;
	t->marked_more = false;
}
