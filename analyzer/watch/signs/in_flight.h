/*
 * in_flight.h - which requests and tasks have begun and not ended, from the events alone. Memory is
 * bounded: further ones than IN_FLIGHT_MAX are not counted. One thread.
 */
#ifndef ANALYZER_WATCH_IN_FLIGHT_H
#define ANALYZER_WATCH_IN_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/event.h"
#include "util/map.h"

#define IN_FLIGHT_MAX 65536u /* of requests, and of tasks */

/* Zeroed by the caller at first. The maps are private. */
struct in_flight {
	bool marks; /* the program marks its requests */
	uint64_t requests; /* that have begun so far */
	bool has_tasks; /* it runs tasks on an event loop */
	struct map open, tasks;
	uint32_t last_task; /* is in `tasks`; 0: none */
};

/* See the next event. 0 or -ENOMEM. */
int in_flight_see(struct in_flight *f, const struct event *e);
static inline uint64_t in_flight_requests(const struct in_flight *f)
{
	return f->open.count;
}
static inline uint64_t in_flight_tasks(const struct in_flight *f)
{
	return f->tasks.count;
}
/* Forget all, as before the first event; also frees the memory. */
void in_flight_fini(struct in_flight *f);

#endif
