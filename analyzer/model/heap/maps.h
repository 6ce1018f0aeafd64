/*
 * maps.h - the mappings' part of the model, and what the model's files share; for them only.
 */
#ifndef ANALYZER_MODEL_MAPS_H
#define ANALYZER_MODEL_MAPS_H

#include "model/model.h"

int maps_on_map(struct model *m, const struct event *e);
int maps_on_unmap(struct model *m, const struct event *e);
int maps_on_ununmap(struct model *m, const struct event *e);

/* Ids are dense; an absurd one is damage, and belongs to the unknown stack. */
#define MODEL_STACK_MAX (1u << 28)
static inline uint32_t model_stack_of(uint32_t stack)
{
	return stack < MODEL_STACK_MAX ? stack : 0;
}

/* Of model_stacks.c. model_stack_stats_at() before model_finish(); */
static inline struct stack_stats *model_stack_stats_open(
    const struct model *m, uint32_t stack, enum stack_stats_kind kind)
{
	const struct stack_stats_page *page =
	    stack < m->limits[kind] ? m->pages[kind][stack / STACK_STATS_PAGE] : NULL;
	uint32_t number = page ? page->stats_list[stack % STACK_STATS_PAGE] : 0;

	return number ? model_stack_stats_number(m, number - 1) : NULL;
}
/* the same, made at first sight, 0 or -ENOMEM; and no more are made. */
int model_stack_stats_of(
    struct model *m, uint32_t stack, enum stack_stats_kind kind, struct stack_stats **out);
void model_stack_stats_list_close(struct model *m);

/* Of model.c, for mappings. */
int model_touch(struct model *m, struct stack_stats *s);
void model_acquired(struct model *m, uint64_t time_ns, uint64_t size, uint64_t live_before);
void model_released(struct model *m, uint64_t time_ns, uint64_t size, uint64_t live_before);

#endif
