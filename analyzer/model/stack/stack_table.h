/*
 * stack_table.h - inside model/: the statistics of all stacks of a process, found by stack and
 * kind. They do not move until the model is freed.
 */
#ifndef ANALYZER_MODEL_STACK_TABLE_H
#define ANALYZER_MODEL_STACK_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/stack/stack_stats.h"
#include "util/vec.h"

/* There is a table for each space and kind, and most have few entries. */
#define STACK_TABLE_PAGE 512u
struct stack_table_page {
	uint32_t numbers[STACK_TABLE_PAGE]; /* 1 + number; 0: no acquisition of that kind */
};
#define STACK_TABLE_BATCH 128u /* statistics in one piece of memory */

/* Filled by stack_table.c, const for all others. */
struct stack_table {
	struct stack_table_page **pages[STACK_STATS_KINDS]; /* NULL after stack_table_close() */
	uint32_t limits[STACK_STATS_KINDS]; /* of stack ids */
	VEC(struct stack_stats *) batches; /* of STACK_TABLE_BATCH each, in order of first use */
	size_t count;
	/* The stacks with `marked` set, which the next high-water mark clears; and others. */
	VEC(struct stack_stats *) marked;
	bool marked_more;
};

/* Ids are dense; an absurd one is damage, and counts as the unknown stack. */
#define STACK_MAX (1u << 28)
static inline uint32_t stack_table_id(uint32_t stack)
{
	return stack < STACK_MAX ? stack : 0;
}

static inline struct stack_stats *stack_table_number(const struct stack_table *t, size_t number)
{
	return &t->batches.items[number / STACK_TABLE_BATCH][number % STACK_TABLE_BATCH];
}

/* Find a stack's statistics; NULL: none of that kind. Pre: before stack_table_close(). */
static inline struct stack_stats *stack_table_open(
    const struct stack_table *t, uint32_t stack, enum stack_stats_kind kind)
{
	const struct stack_table_page *page =
	    stack < t->limits[kind] ? t->pages[kind][stack / STACK_TABLE_PAGE] : NULL;
	uint32_t number = page ? page->numbers[stack % STACK_TABLE_PAGE] : 0;

	return number ? stack_table_number(t, number - 1) : NULL;
}

/* The same, created at first use. 0 or -ENOMEM. */
int stack_table_get(
    struct stack_table *t, uint32_t stack, enum stack_stats_kind kind, struct stack_stats **out);

int stack_table_mark(struct stack_table *t, struct stack_stats *s);
/* Call before a stack changes: keeps its live bytes for the high-water mark. 0 or -ENOMEM. */
static inline int stack_table_touch(struct stack_table *t, struct stack_stats *s)
{
	return s->marked ? 0 : stack_table_mark(t, s);
}
/* Call at a new high-water mark: no stack has changed since. */
void stack_table_peak(struct stack_table *t);

/* Call after the last event: frees the tables. Stacks can still be read. */
void stack_table_close(struct stack_table *t);
void stack_table_fini(struct stack_table *t);

#endif
