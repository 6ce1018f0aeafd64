/*
 * maps.h - the mappings' part of the model; called by model_apply() only.
 */
#ifndef ANALYZER_MODEL_MAPS_H
#define ANALYZER_MODEL_MAPS_H

#include "model/model.h"

int maps_on_map(struct model *m, const struct event *e);
int maps_on_unmap(struct model *m, const struct event *e);
int maps_on_ununmap(struct model *m, const struct event *e);

/* Of model.c, for mappings. */
int model_site_of(struct model *m, uint32_t stack, enum site_kind kind, struct site **out);
int model_touch(struct model *m, struct site *s);
void model_acquired(struct model *m, uint64_t time_ns, uint64_t size, uint64_t live_before);
void model_released(struct model *m, uint64_t time_ns, uint64_t size, uint64_t live_before);

#endif
