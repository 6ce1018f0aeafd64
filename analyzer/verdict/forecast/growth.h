/*
 * growth.h - what a process's growing call sites keep, over time, and the forecast of a space from
 * it: growth by place, summed. Imports, loading and caches that exchange their content make the
 * curve of all live bytes rise too, and no call site of theirs keeps on growing.
 */
#ifndef ANALYZER_VERDICT_GROWTH_H
#define ANALYZER_VERDICT_GROWTH_H

#include <stdbool.h>
#include <stdint.h>

#include "model/callsite/callsite.h"
#include "model/space/space.h"
#include "verdict/forecast/forecast.h"
#include "verdict/forecast/rooms.h"
#include "verdict/forecast/thread_stacks.h"

/* True if each generation of its blocks leaves survivors, or its blocks grow; imports do not
 * count. */
bool growth_is_of(const struct callsite *c);

/* Return the bytes that the call site kept at that time. */
double growth_kept(const struct callsite *c, uint64_t time_ns);

/* Fill `points`, evenly from the first kept block until `now_ns`, with the sum over all call sites
 * that grow; of the one that starts threads, with their stacks. False: none does, and nothing is
 * filled. */
bool growth_points(const struct model *m, const struct callsites *all,
    const struct thread_stacks *stacks, uint64_t now_ns,
    struct forecast_point points[FORECAST_POINTS]);

/* Forecast one space, the host's or a device's, by its model and its call sites at its end.
 * `now_ns`: time of the process's latest event, in whatever space. `room`: what is left of its
 * limit; a limit on address space or data counts the stacks of threads, too. */
void growth_forecast(const struct model *m, const struct callsites *all, uint64_t now_ns,
    const struct room *room, struct forecast *out);

/* What to forecast of a device: PyTorch's blocks, where its allocator holds the device's memory,
 * and what is free inside its segments is room, too; else the driver's blocks. `cuda`: the device's
 * space; `left`: bytes that are left of the device. */
struct device_growth {
	const struct model *model;
	uint64_t room;
};
struct device_growth growth_of_device(
    const struct spaces *spaces, const struct space *cuda, uint64_t left);

#endif
