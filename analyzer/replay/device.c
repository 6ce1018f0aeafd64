/*
 * device.c - a device's requests made once more: PyTorch's of the model of its allocator, a
 * driver's of a device that gives as long as bytes are left.
 */
#include <errno.h>
#include <string.h>

#include "replay/replay.h"
#include "util/map.h"
#include "util/num.h"
#include "verdict/device.h"

/* The record's last refusal, seen while all requests pass by. */
struct watch {
	uint64_t serial;
};

static uint64_t watch_size(void *arg, const struct torch_block *b)
{
	struct watch *w = arg;

	if (b->refused)
		w->serial = b->serial;
	return b->size;
}

static void set_original(
    const struct verdict_result *v, struct feed feed, struct replay_result *out)
{
	const struct device_failure *f = spaces_failure(v->model->spaces);
	const struct device_report *d = v->device;
	struct replay_point *p = &out->original;

	*p = (struct replay_point){.failed = true,
	    .kind = failure_kind_name(v->failure.kind),
	    .requested = d->requested,
	    .time_ns = v->failure.time_ns};
	replay_stack(p, &feed, f ? f->stack : 0);
	memcpy(p->space, d->space, sizeof(p->space));
	out->limit_kind = v->failure.limit;
	out->limit_bytes = v->failure.limit_bytes;
	out->modelled = true;
}

static void set_replayed(struct replay_result *out, struct feed feed, uint64_t requested,
    uint64_t time_ns, uint64_t event, uint32_t stack)
{
	struct replay_point *p = &out->replayed;

	*p = out->original;
	p->requested = requested;
	p->time_ns = time_ns;
	p->event = event;
	replay_stack(p, &feed, stack);
}

static int replay_torch(const struct verdict_result *v, struct feed feed,
    const struct replay_request *request, struct replay_result *out, struct err *err)
{
	struct watch watch = {0};
	struct torch_change change = {.memory = request->memory};
	struct torch_outcome o;
	int rc;

	change.rewrite.arg = &watch;
	change.rewrite.size = watch_size;
	rc = torch_replay(feed, v->device->number, &change, 1, &o, &out->match, err);
	if (rc)
		return rc;
	if (out->match.kind == TORCH_MATCH_NONE)
		return err_set(err, -ENOENT,
		    "none of PyTorch's blocks were recorded: what it asked of %s cannot be "
		    "replayed",
		    v->device->space);
	out->original.event = watch.serial;
	out->peak_live = o.peak_allocated;
	out->headroom = o.headroom;
	if (o.refused && !o.fits)
		set_replayed(out, feed, o.refusal.size, o.refusal.block.time_ns,
		    o.refusal.block.serial, o.refusal.block.stack);
	out->same = out->replayed.failed && out->replayed.event == out->original.event;
	return 0;
}

struct driver {
	struct map blocks; /* address to size */
	uint64_t used, room, requests;
};

/* One of the driver's requests: 1 when it does not fit. */
static int ask(struct driver *d, const struct event *e)
{
	uint64_t *size;

	d->requests++;
	if (d->used + e->size > d->room)
		return 1;
	size = map_put(&d->blocks, e->address);
	if (!size)
		return -ENOMEM;
	*size = e->size;
	d->used += e->size;
	return 0;
}

static void give_back(struct driver *d, uint64_t address)
{
	const uint64_t *size = map_find(&d->blocks, address);

	if (!size)
		return;
	d->used -= *size;
	map_remove(&d->blocks, address);
}

static bool is_space(const struct feed *feed, uint32_t id, const char *name)
{
	const char *is = feed->space ? feed->space(feed->self, id) : NULL;

	return is && strcmp(is, name) == 0;
}

static int replay_driver(const struct verdict_result *v, struct feed feed,
    const struct replay_request *request, struct replay_result *out, struct err *err)
{
	const struct space *sp = spaces_find(v->model->spaces, v->device->device);
	const struct device_failure *f = spaces_failure(v->model->spaces);
	struct driver d = {0};
	struct event e;
	int rc = feed.rewind(feed.self, err);

	if (rc || !sp || !f)
		return rc ? rc : err_set(err, -ENOENT, "no request of that device was recorded");
	/* What its blocks could have come to: what they had, and what the device had left. */
	d.room = f->live_bytes + (f->free_known ? num_least(f->free, f->size - 1) : f->size - 1);
	if (request->memory && v->failure.limit_bytes)
		d.room += request->memory - v->failure.limit_bytes;
	while (!rc && (rc = feed.next(feed.self, &e, err)) == 1) {
		bool own = e.space && is_space(&feed, e.space, v->device->device);
		bool last = e.kind == EV_FAILED && own && e.time_ns == f->time_ns;

		rc = 0;
		if (e.kind == EV_SPACE_FREE)
			give_back(&d, e.address);
		if (last)
			out->original.event = d.requests + 1;
		if ((own && e.kind == EV_SPACE_ALLOC) || last)
			rc = ask(&d, &e);
		if (d.used > out->peak_live)
			out->peak_live = d.used;
		if (rc < 0)
			err_set(err, rc, "no memory for the replay");
		if (rc == 1 || last)
			break;
	}
	if (rc == 1) {
		set_replayed(out, feed, e.size, e.time_ns, d.requests, e.stack);
		out->same = out->replayed.event == out->original.event;
		rc = 0;
	}
	map_free(&d.blocks);
	out->headroom = (int64_t)(d.room - d.used) - (out->replayed.failed ? (int64_t)e.size : 0);
	return rc;
}

int replay_device(const struct verdict_result *verdict, const struct replay_request *request,
    struct replay_result *out, struct err *err)
{
	const struct space *sp = spaces_find(verdict->model->spaces, verdict->device->space);
	struct feed feed = feed_of_trace(verdict->trace);
	int rc;

	memset(out, 0, sizeof(*out));
	set_original(verdict, feed, out);
	out->memory = request->memory;
	if (strncmp(verdict->device->space, "torch:", 6) == 0)
		rc = replay_torch(verdict, feed, request, out, err);
	else
		rc = replay_driver(verdict, feed, request, out, err);
	if (!rc && out->memory > out->limit_bytes && !out->replayed.failed && sp)
		out->lasts_ns =
		    replay_lasts(sp->model, out->original.time_ns, out->memory - out->limit_bytes);
	return rc;
}
