#include "verdict/judge/put_off.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/request/request.h"
#include "util/map.h"
#include "util/progress.h"
#include "verdict/request/stages.h"

struct reader {
	struct put_off *out;
	const struct verdict_result *result;
	struct requests *requests;
	bool by_lanes; /* no request was recorded: threads and tasks are the units */
	struct map units; /* key of a request or lane: 1 + unit */
	char name[32];
	uint32_t space; /* id of torch:N; 0: not met yet */
	bool host;
};

/* True if that thread or task held alike with others at the moment. */
static bool held_alike(const struct reader *d, uint64_t worker)
{
	const struct requests_held *held = &d->result->flow.held;

	for (uint32_t i = 0; i < held->alike; i++)
		if (event_worker(held->list[i].lane->thread, held->list[i].lane->task) == worker)
			return true;
	return false;
}

/* Return the key of the event's request or worker; no two share one. 0: none. */
static uint64_t key_of(const struct reader *d, const struct event *e)
{
	const struct lane *l;
	const struct request_run *q;

	if (d->by_lanes)
		return event_worker(e->thread, e->task) << 1 | 1;
	l = requests_lane(d->requests, e->thread, e->task);
	q = l ? requests_of_lane(d->requests, l) : NULL;
	return q ? q->serial << 1 : 0;
}

/* Set *out to 1 + unit, or 0. */
static int unit_of(struct reader *d, const struct event *e, uint32_t *out)
{
	uint64_t key = key_of(d, e), *at = key ? map_put(&d->units, key) : NULL;
	struct put_off_unit *u;

	*out = 0;
	if (!key)
		return 0;
	if (!at)
		return -ENOMEM;
	if (!*at) {
		if (vec_push(&d->out->units, (struct put_off_unit){.start_ns = e->time_ns,
						 .worker = event_worker(e->thread, e->task),
						 .ended = !d->by_lanes}))
			return -ENOMEM;
		*at = d->out->units.count;
	}
	u = &d->out->units.items[*at - 1];
	u->end_ns = e->time_ns;
	*out = (uint32_t)*at;
	return 0;
}

static bool is_block(struct reader *d, const struct event *e, const struct feed *feed)
{
	const char *name;

	if (e->kind != EV_SPACE_ALLOC && e->kind != EV_FAILED)
		return false;
	if (!d->space && e->space && feed->space) {
		name = feed->space(feed->self, e->space);
		if (name && strcmp(name, d->name) == 0)
			d->space = e->space;
	}
	/* torch_record.c counts only these. */
	return d->space && e->space == d->space && e->size;
}

static int change(struct reader *d, const struct event *e, uint32_t owner, int64_t bytes)
{
	if (owner)
		d->out->units.items[owner - 1].left += bytes;
	return vec_push(&d->out->changes,
	    (struct put_off_change){.time_ns = e->time_ns, .bytes = bytes, .owner = owner});
}

/* Apply a host's block that `unit` asked for. The refused request counts as granted. */
static int on_host(struct reader *d, const struct event *e, uint32_t unit)
{
	const struct failure_view *f = &d->result->failure;
	bool refused = e->kind == EV_FAILED && e->space == TRACE_SPACE_HOST &&
		       e->time_ns == f->time_ns && e->size == f->requested_bytes;
	const struct block *b = e->block;
	int rc = 0;

	if (e->kind == EV_ALLOC && b) {
		rc = vec_push(&d->out->owners, unit);
		rc = rc ? rc : change(d, e, unit, (int64_t)block_bytes(b));
	} else if ((e->kind == EV_FREE || e->kind == EV_UNFREE) && b &&
		   b->serial <= d->out->owners.count) {
		rc = change(d, e, d->out->owners.items[b->serial - 1],
		    e->kind == EV_FREE ? -(int64_t)block_bytes(b) : (int64_t)block_bytes(b));
	} else if (refused) {
		rc = change(d, e, unit, (int64_t)e->size);
	}
	if (!rc && unit) {
		d->out->units.items[unit - 1].blocks += e->kind == EV_ALLOC || refused;
		d->out->units.items[unit - 1].refused |= refused;
	}
	return rc;
}

static int on_device(
    struct reader *d, const struct event *e, const struct feed *feed, uint32_t unit)
{
	int rc;

	if (!is_block(d, e, feed))
		return 0;
	rc = vec_push(&d->out->owners, unit);
	if (!rc && unit) {
		d->out->units.items[unit - 1].blocks++;
		d->out->units.items[unit - 1].refused |= e->kind == EV_FAILED;
	}
	return rc;
}

static int note_work(struct reader *d, const struct event *e, const struct feed *feed)
{
	struct block b = {.address = e->address,
	    .size = e->size,
	    .stack = e->stack,
	    .thread = e->thread,
	    .task = e->task,
	    .birth_ns = e->time_ns};

	if (d->by_lanes)
		return 0;
	if (d->host)
		return requests_apply(d->requests, e);
	return e->kind == EV_SPACE_ALLOC && is_block(d, e, feed)
		   ? requests_acquired(d->requests, &b, e->time_ns)
		   : requests_passed(d->requests, e);
}

static int on_event(struct reader *d, const struct event *e, const struct feed *feed)
{
	uint32_t unit;
	int rc = note_work(d, e, feed);

	d->out->last_ns = e->time_ns;
	/* Events from the supervisor, and the process's exit, belong to no unit. */
	if (rc || e->kind == EV_OUTSIDE || e->kind == EV_EXIT)
		return rc;
	rc = unit_of(d, e, &unit);
	if (!rc)
		rc = d->host ? on_host(d, e, unit) : on_device(d, e, feed, unit);
	if (!rc && unit)
		d->out->units.items[unit - 1].ended |=
		    e->kind == EV_THREAD_EXIT || e->kind == EV_TASK_END;
	return rc;
}

/* Decide which units are requests, and which were in flight at the end of the recording. */
static void judge(struct reader *d)
{
	const struct requests *r = d->requests;
	uint64_t moment = d->result->callsites->moment_ns;

	for (uint32_t i = 0; !d->by_lanes && i < r->open_used; i++) {
		const uint64_t *at = map_find(&d->units, r->open[i].serial << 1);

		if (at && r->open[i].used)
			d->out->units.items[*at - 1].ended = false;
	}
	for (size_t i = 0; i < d->out->units.count; i++) {
		struct put_off_unit *u = &d->out->units.items[i];

		/* A server's own thread outlives its requests, and holds other blocks. */
		u->request = u->blocks && (!d->by_lanes || (u->ended && u->end_ns < moment) ||
					      held_alike(d, u->worker));
		if (!u->ended)
			u->end_ns = d->out->last_ns;
	}
}

/* Release everything that units hold which were in flight at the end, or refused. */
static int let_go(struct put_off *p)
{
	int rc = 0;

	for (size_t i = 0; i < p->units.count && !rc; i++) {
		const struct put_off_unit *u = &p->units.items[i];

		if (u->request && u->left > 0 && (!u->ended || u->refused))
			rc = vec_push(&p->changes,
			    (struct put_off_change){
				.time_ns = u->end_ns, .bytes = -u->left, .owner = (uint32_t)i + 1});
	}
	return rc;
}

int put_off_read(const struct verdict_result *r, struct feed feed, uint32_t device,
    struct put_off *out, struct err *err)
{
	struct reader d = {.out = out, .result = r};
	struct stages stages;
	struct event e;
	uint64_t events = 0;
	int rc = feed.rewind(feed.self, err), more = 0;

	if (rc)
		return rc;
	memset(out, 0, sizeof(*out));
	d.host = device == PUT_OFF_HOST;
	snprintf(d.name, sizeof(d.name), "torch:%u", (unsigned)device);
	d.by_lanes = !r->flow.requests || requests_source(r->flow.requests) >= REQUESTS_TASKS;
	stages_init(&stages, &feed, r->frameworks.frames);
	d.requests = stages_requests(&stages);
	rc = d.requests ? 0 : -ENOMEM;
	feed_progress(&feed, "reading what could be put off");
	while (!rc && (more = feed.next(feed.self, &e, err)) == 1) {
		rc = on_event(&d, &e, &feed);
		feed_passed(&feed, ++events);
	}
	progress_end();
	if (!rc && !more) {
		judge(&d);
		rc = let_go(out);
	}
	requests_free(d.requests);
	map_free(&d.units);
	if (rc)
		err_set(err, rc, "no memory for the requests");
	return rc ? rc : more;
}

void put_off_fini(struct put_off *p)
{
	vec_free(&p->units);
	vec_free(&p->owners);
	vec_free(&p->changes);
}

/* --- a schedule --- */

int put_off_schedule(const struct put_off *p, uint64_t most, struct put_off_schedule *out)
{
	size_t slots = most < p->units.count ? (size_t)most : p->units.count;
	uint64_t *until = calloc(slots + 1, sizeof(*until)); /* by slot: end of its unit */

	*out = (struct put_off_schedule){.of = p};
	out->delays = calloc(p->units.count + 1, sizeof(*out->delays));
	out->granted = calloc(p->units.count + 1, sizeof(*out->granted));
	for (size_t i = 0; until && out->delays && out->granted && i < p->units.count; i++) {
		const struct put_off_unit *u = &p->units.items[i];
		size_t first = 0;

		if (!u->request)
			continue;
		for (size_t k = 1; k < slots; k++)
			if (until[k] < until[first])
				first = k;
		if (until[first] > u->start_ns)
			out->delays[i] = until[first] - u->start_ns;
		out->waited += out->delays[i] > 0;
		until[first] = u->end_ns + out->delays[i];
	}
	free(until);
	return until && out->delays && out->granted ? 0 : -ENOMEM;
}

void put_off_schedule_fini(struct put_off_schedule *s)
{
	free(s->delays);
	free(s->granted);
	s->delays = NULL;
	s->granted = NULL;
}

static const struct put_off_unit *request_of(const struct put_off *p, uint32_t owner)
{
	return owner && p->units.items[owner - 1].request ? &p->units.items[owner - 1] : NULL;
}

static int by_time(const void *a, const void *b)
{
	const struct put_off_change *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

int put_off_peak(
    const struct put_off_schedule *s, uint64_t moment_ns, uint64_t *peak, uint64_t *live)
{
	const struct put_off *p = s->of;
	struct put_off_change *list = malloc((p->changes.count + 1) * sizeof(*list));
	int64_t now = 0, most = 0, then = 0;
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < p->changes.count; i++) {
		struct put_off_change c = p->changes.items[i];

		if (c.time_ns < moment_ns)
			then += c.bytes;
		if (request_of(p, c.owner))
			c.time_ns += s->delays[c.owner - 1];
		else if (c.time_ns > moment_ns)
			continue;
		list[n++] = c;
	}
	qsort(list, n, sizeof(*list), by_time);
	for (size_t i = 0; i < n; i++) {
		now += list[i].bytes;
		most = now > most ? now : most;
	}
	free(list);
	*peak = (uint64_t)most;
	*live = then > 0 ? (uint64_t)then : 0;
	return 0;
}

/* Return the unit of one of the device's requests, and its index; NULL: none. */
static const struct put_off_unit *owner_of(
    const struct put_off_schedule *s, uint64_t serial, uint32_t *out)
{
	const struct put_off *p = s->of;
	uint32_t owner = serial <= p->owners.count ? p->owners.items[serial - 1] : 0;

	*out = owner - 1;
	return request_of(p, owner);
}

static uint64_t delay_of(void *arg, const struct torch_block *b, uint64_t *end)
{
	const struct put_off_schedule *s = arg;
	uint32_t index;
	const struct put_off_unit *u = owner_of(s, b->serial, &index);

	if (!u)
		return 0;
	if ((!u->ended || u->refused) && u->end_ns >= b->time_ns)
		*end = u->end_ns - b->time_ns;
	return s->delays[index];
}

/* A unit that the replay refuses, too, leaves the same blocks as in the recording. */
static bool ends(void *arg, uint64_t serial)
{
	const struct put_off_schedule *s = arg;
	uint32_t index;
	const struct put_off_unit *u = owner_of(s, serial, &index);

	return u && (!u->refused || s->granted[index]);
}

static void granted(void *arg, uint64_t serial)
{
	const struct put_off_schedule *s = arg;
	uint32_t index;

	if (owner_of(s, serial, &index))
		s->granted[index] = true;
}

struct torch_shift put_off_shift(struct put_off_schedule *s)
{
	return (struct torch_shift){.arg = s, .delay = delay_of, .ends = ends, .granted = granted};
}
