/* work.c - see work.h. */
#include "report/html/work/work.h"

#include <errno.h>

#include "model/request/request.h"

/* Requests are numbered from 1 as they begin. */
static struct work_request *request_of(struct work *w, const struct request_run *q)
{
	size_t at = (size_t)q->serial - 1;
	struct work_request *x;

	if (!q->serial || q->serial > WORK_REQUESTS)
		return NULL;
	if (vec_reach(&w->list, at + 1)) {
		w->failed = true;
		return NULL;
	}
	x = &w->list.items[at];
	if (!x->known)
		*x = (struct work_request){
		    .name = q->name, .thread = q->thread, .begin_ns = q->start_ns, .known = true};
	return x;
}

static void on_end(void *arg, const struct request_run *q)
{
	struct work_request *x = request_of(arg, q);

	if (x)
		x->end_ns = q->end_ns;
}

int work_init(struct work *w, const struct verdict_result *r, const struct feed *feed)
{
	const struct requests *known = r->flow.requests;

	map_seed();
	w->last_key = UINT64_MAX;
	w->frames = r->flow.stage_count ? r->frameworks.frames : NULL;
	/* Marks overrule frames: without them, no frame need be looked at. */
	stages_init(&w->stages, feed, known && known->marked ? NULL : r->frameworks.frames);
	if (!known || !known->begun)
		return 0;
	w->requests = stages_requests(&w->stages);
	if (!w->requests)
		return -ENOMEM;
	w->requests->on_end = on_end;
	w->requests->end_arg = w;
	return 0;
}

void work_fini(struct work *w)
{
	for (size_t i = 0; i < w->workers.count; i++)
		vec_free(&w->workers.items[i].stints);
	vec_free(&w->workers);
	vec_free(&w->list);
	map_free(&w->by_worker);
	requests_free(w->requests);
	w->requests = NULL;
}

static struct work_worker *worker_of(struct work *w, uint64_t key, bool create)
{
	uint64_t *at;

	if (key == w->last_key)
		return &w->workers.items[w->last_worker];
	at = create ? map_put(&w->by_worker, key) : map_find(&w->by_worker, key);
	if (!at || (!*at && vec_push(&w->workers, (struct work_worker){.request = WORK_NONE}))) {
		w->failed |= create;
		return NULL;
	}
	if (!*at)
		*at = w->workers.count;
	w->last_key = key;
	w->last_worker = (uint32_t)*at - 1;
	return &w->workers.items[w->last_worker];
}

/* Note the request that the event's worker is in now. */
static void note(struct work *w, const struct event *e)
{
	const struct lane *l = requests_lane(w->requests, e->thread, e->task);
	const struct request_run *q = l ? requests_of_lane(w->requests, l) : NULL;
	struct work_request *x = q ? request_of(w, q) : NULL;
	uint32_t now = x ? (uint32_t)(x - w->list.items) : WORK_NONE;
	struct work_worker *worker = worker_of(w, event_worker(e->thread, e->task), x != NULL);

	if (x && e->kind == EV_FAILED)
		x->refused = true;
	if (!worker || worker->request == now)
		return;
	if (worker->request != WORK_NONE)
		worker->stints.items[worker->stints.count - 1].until_ns = e->time_ns;
	worker->request = WORK_NONE;
	if (now == WORK_NONE || w->stints >= WORK_STINTS)
		return;
	if (vec_push(&worker->stints, (struct work_stint){e->time_ns, 0, now})) {
		w->failed = true;
		return;
	}
	w->stints++;
	worker->request = now;
}

int work_apply(struct work *w, const struct event *e)
{
	int rc;

	if (!w->requests)
		return 0;
	rc = requests_apply(w->requests, e);
	if (!rc && (event_acquires(e) || e->kind == EV_MARK || e->kind == EV_FAILED ||
		       e->kind == EV_THREAD_EXIT || e->kind == EV_TASK_END))
		note(w, e);
	return rc ? rc : w->failed ? -ENOMEM : 0;
}

uint32_t work_request_at(struct work *w, uint32_t thread, uint32_t task, uint64_t time_ns)
{
	const struct work_worker *worker =
	    w->requests ? worker_of(w, event_worker(thread, task), false) : NULL;
	size_t least = 0, most = worker ? worker->stints.count : 0;
	const struct work_stint *s;

	if (!most)
		return WORK_NONE;
	s = &worker->stints.items[most - 1];
	/* Mostly the last one. */
	if (s->from_ns > time_ns) {
		while (least < most) {
			size_t middle = (least + most) / 2;

			if (worker->stints.items[middle].from_ns <= time_ns)
				least = middle + 1;
			else
				most = middle;
		}
		if (!least)
			return WORK_NONE;
		s = &worker->stints.items[least - 1];
	}
	return !s->until_ns || time_ns < s->until_ns ? s->request : WORK_NONE;
}

enum role work_stage(const struct work *w, uint32_t stack)
{
	enum role role;

	if (!w->frames)
		return ROLE_NONE;
	role = (enum role)framework_stack(w->frames, w->stages.feed, stack).stage;
	return framework_is_stage(role) ? role : ROLE_NONE;
}
