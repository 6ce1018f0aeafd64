/*
 * device.c - a device's requests made once more: PyTorch's of the model of its allocator, and where
 * that is asked for of the allocator itself; a driver's of a device that gives as long as bytes are
 * left.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "replay/replay.h"
#include "util/map.h"
#include "util/num.h"
#include "verdict/device.h"

/* How far the model may be off where several streams were told apart by their blocks alone. */
#define SEVERAL_STREAMS 0.01

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

/* Where the requests are replayed: what failed, or PyTorch's allocator where that is asked for. */
static const struct space *choose(
    const struct verdict_result *v, const struct replay_request *request)
{
	const struct spaces *s = v->model->spaces;
	bool failed = v->failure.kind == FAILURE_CUDA_OOM;

	if (failed && !replay_wants_torch(request))
		return spaces_find(s, v->device->space);
	for (uint32_t i = 0; s && i < s->count; i++)
		if (s->list[i]->kind == SPACE_TORCH &&
		    (!failed || s->list[i]->device == v->device->number))
			return s->list[i];
	return NULL;
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
}

static void set_replayed(struct replay_result *out, struct feed feed, const char *space,
    uint64_t requested, uint64_t time_ns, uint64_t event, uint32_t stack)
{
	struct replay_point *p = &out->replayed;

	*p = (struct replay_point){.failed = true,
	    .kind = failure_kind_name(FAILURE_CUDA_OOM),
	    .requested = requested,
	    .time_ns = time_ns,
	    .event = event};
	snprintf(p->space, sizeof(p->space), "%s", space);
	replay_stack(p, &feed, stack);
}

/* Of the settings, and of what they are read from. */
static const char *set_settings(
    struct feed feed, const struct replay_request *request, struct caching_settings *out)
{
	torch_replay_settings(feed, out);
	if (!request->alloc_conf)
		return torch_replay_conf(feed);
	caching_settings_init(out);
	caching_settings_parse(out, request->alloc_conf, NULL);
	return request->alloc_conf;
}

struct through_refusal replay_refusal(const struct torch_outcome *o)
{
	const struct torch_refusal *f = &o->refusal;

	return o->refused
		   ? (struct through_refusal){f->block.serial, f->size, f->reserved, f->allocated}
		   : (struct through_refusal){0};
}

/* The same failing request; and as much reserved, where what is asked is known to the byte. */
static void compare(struct replay_result *out)
{
	const struct torch_outcome *o = &out->torch.model;
	const struct through_answer *own = &out->torch.own;
	uint64_t most = own->peak_reserved ? own->peak_reserved : 1;
	double off = ((double)o->peak_reserved - (double)own->peak_reserved) / (double)most;

	out->torch.deviation = off;
	out->torch.agree = replay_refusal(o).serial == own->refused.serial &&
			   fabs(off) <= (out->match.streams > 1 ? SEVERAL_STREAMS : 0);
}

static int ask_own(const struct replay_request *request, struct through_stream *stream,
    struct replay_result *out, struct err *err)
{
	struct through_request to = request->through;
	int rc;

	to.settings = out->torch.settings;
	to.memory = out->torch.model.memory;
	to.allowed = out->torch.model.allowed;
	if (!to.memory)
		return err_set(err, -EINVAL,
		    "how large the device was is not recorded: say it, as --memory 24GiB");
	rc = through_torch(&to, stream, &out->torch.own, err);
	out->torch.through = !rc;
	if (!rc)
		compare(out);
	return rc;
}

static int replay_torch(const struct space *sp, struct feed feed,
    const struct replay_request *request, struct replay_result *out, struct err *err)
{
	struct watch watch = {0};
	struct caching_settings settings;
	struct through_stream stream = {0};
	struct torch_change change = {.memory = request->memory, .settings = &settings};
	struct torch_outcome *o = &out->torch.model;
	int rc = 0;

	out->torch.settings = set_settings(feed, request, &settings);
	change.rewrite.arg = &watch;
	change.rewrite.size = watch_size;
	if (request->through.python) {
		rc = through_stream_open(&stream, err);
		through_stream_change(&stream, &change);
	}
	if (!rc)
		rc = torch_replay(feed, sp->device, &change, 1, o, &out->match, err);
	if (!rc && out->match.kind == TORCH_MATCH_NONE)
		rc = err_set(err, -ENOENT,
		    "none of PyTorch's blocks were recorded: what it asked of %s cannot be "
		    "replayed",
		    sp->name);
	if (!rc) {
		out->torch.asked = true;
		out->original.event = watch.serial;
		out->peak_live = o->peak_allocated;
		out->headroom = o->headroom;
		if (o->refused)
			set_replayed(out, feed, sp->name, o->refusal.size, o->refusal.block.time_ns,
			    o->refusal.block.serial, o->refusal.block.stack);
		if (request->through.python)
			rc = ask_own(request, &stream, out, err);
	}
	through_stream_close(&stream);
	return rc;
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
		set_replayed(out, feed, v->device->space, e.size, e.time_ns, d.requests, e.stack);
		rc = 0;
	}
	map_free(&d.blocks);
	out->headroom = (int64_t)(d.room - d.used) - (out->replayed.failed ? (int64_t)e.size : 0);
	return rc;
}

bool replay_wants_torch(const struct replay_request *request)
{
	return request->through.python || request->alloc_conf;
}

int replay_device(const struct verdict_result *verdict, const struct replay_request *request,
    struct replay_result *out, struct err *err)
{
	const struct space *sp = choose(verdict, request);
	struct feed feed = feed_of_trace(verdict->trace);
	int rc;

	memset(out, 0, sizeof(*out));
	if (!sp)
		return err_set(err, -ENOENT,
		    "PyTorch had no blocks on a device there: its allocator cannot be asked");
	if (verdict->failure.kind == FAILURE_CUDA_OOM)
		set_original(verdict, feed, out);
	out->modelled = true;
	out->memory = request->memory;
	out->changed = request->alloc_conf && sp->kind == SPACE_TORCH;
	if (sp->kind == SPACE_TORCH)
		rc = replay_torch(sp, feed, request, out, err);
	else
		rc = replay_driver(verdict, feed, request, out, err);
	out->same = out->replayed.failed == out->original.failed &&
		    out->replayed.event == out->original.event;
	if (!rc && out->memory > out->limit_bytes && out->limit_bytes && !out->replayed.failed)
		out->lasts_ns =
		    replay_lasts(sp->model, out->original.time_ns, out->memory - out->limit_bytes);
	return rc;
}
