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

/* Of model_stacks.c. model_site_at() before model_finish(); */
static inline struct site *model_site_open(
    const struct model *m, uint32_t stack, enum site_kind kind)
{
	const struct site_page *page =
	    stack < m->limits[kind] ? m->pages[kind][stack / SITE_PAGE] : NULL;
	uint32_t number = page ? page->sites[stack % SITE_PAGE] : 0;

	return number ? model_site_number(m, number - 1) : NULL;
}
/* the same, made at first sight, 0 or -ENOMEM; and no more are made. */
int model_site_of(struct model *m, uint32_t stack, enum site_kind kind, struct site **out);
void model_sites_close(struct model *m);

/* Of model.c, for mappings. */
int model_touch(struct model *m, struct site *s);
void model_acquired(struct model *m, uint64_t time_ns, uint64_t size, uint64_t live_before);
void model_released(struct model *m, uint64_t time_ns, uint64_t size, uint64_t live_before);

#endif
