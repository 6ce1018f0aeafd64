#include "watch/signs/in_flight.h"

#include <errno.h>

static int add(struct map *set, uint64_t key)
{
	if (set->count >= IN_FLIGHT_MAX)
		return 0;
	map_seed();
	return map_put(set, key) ? 0 : -ENOMEM;
}

static int see_request(struct in_flight *f, const struct event *e)
{
	switch (e->u.mark.phase) {
	case TRACE_MARK_BEGIN:
		f->marks = true;
		f->requests++;
		return add(&f->open, e->u.mark.id);
	case TRACE_MARK_END:
		/* Its begin may have been before what was read: then nothing is removed. */
		f->marks = true;
		map_remove(&f->open, e->u.mark.id);
		return 0;
	default:
		return 0;
	}
}

int in_flight_see(struct in_flight *f, const struct event *e)
{
	if (e->kind == EV_MARK && e->u.mark.what == TRACE_MARK_REQUEST)
		return see_request(f, e);
	if (!e->task)
		return 0;
	if (e->kind == EV_TASK_END) {
		map_remove(&f->tasks, e->task);
		f->last_task = 0;
		return 0;
	}
	/* A release may belong to the next task already, so only an acquisition tells that one
	 * runs. */
	if (!event_acquires(e) || e->task == f->last_task)
		return 0;
	f->has_tasks = true;
	f->last_task = e->task;
	return map_find(&f->tasks, e->task) ? 0 : add(&f->tasks, e->task);
}

void in_flight_fini(struct in_flight *f)
{
	map_free(&f->open);
	map_free(&f->tasks);
	*f = (struct in_flight){0};
}
