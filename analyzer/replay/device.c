/*
 * device.c - repeats a device's requests: PyTorch's on the model of its allocator and, if asked, on
 * the allocator itself; a driver's by driver.c.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "replay/replay.h"
#include "util/num.h"
#include "util/tuned.h"
#include "verdict/device/device.h"

TUNED(double, SEVERAL_STREAMS, 0.01,
    "streams that only their blocks tell apart may be confused now and then");

/* Returns the space to replay: the one that failed, or PyTorch's allocator if that is asked for. */
static const struct space *choose(
    const struct verdict_result *v, const struct replay_request *request)
{
	const struct spaces *s = v->model->spaces;
	bool failed = v->failure.kind == FAILURE_CUDA_OOM;

	if (failed && !replay_wants_torch(request))
		return spaces_find(s, v->devices.first->space);
	for (uint32_t i = 0; s && i < s->count; i++)
		if (s->list[i]->kind == SPACE_TORCH &&
		    (!failed || s->list[i]->device == v->devices.first->number))
			return s->list[i];
	return NULL;
}

static void set_original(
    const struct verdict_result *v, struct feed feed, struct replay_result *out)
{
	const struct device_failure *f = spaces_failure(v->model->spaces);
	const struct device_report *d = v->devices.first;
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

void replay_set_replayed(
    struct replay_result *out, struct feed feed, const char *space, const struct replay_point *at)
{
	struct replay_point *p = &out->replayed;

	*p = *at;
	p->failed = true;
	p->kind = failure_kind_name(FAILURE_CUDA_OOM);
	snprintf(p->space, sizeof(p->space), "%s", space);
	replay_stack(p, &feed, at->stack);
}

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

/* Compares the failing requests; and the reserved bytes, where requests are known to the byte. */
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
	struct through_request to = {.program = request->python,
	    .script = request->through_torch,
	    .simgpu = request->simgpu,
	    .settings = out->torch.settings,
	    .memory = out->torch.model.memory,
	    .allowed = out->torch.model.allowed};
	int rc;

	if (!to.memory)
		return err_set(err, -EINVAL,
		    "the trace does not say how large the device was: give its size, as --memory "
		    "24GiB");
	rc = through_run("PyTorch's own allocator", &to, stream, &out->torch.own, err);
	out->torch.through = !rc;
	if (!rc)
		compare(out);
	return rc;
}

static int replay_torch(const struct space *sp, struct feed feed,
    const struct replay_request *request, struct replay_result *out, struct err *err)
{
	struct caching_settings settings;
	struct through_stream stream = {0};
	struct torch_change change = {.memory = request->memory, .settings = &settings};
	struct torch_outcome *o = &out->torch.model;
	int rc = 0;

	out->torch.settings = set_settings(feed, request, &settings);
	if (request->python) {
		rc = through_stream_open(&stream, err);
		through_stream_change(&stream, &change);
	}
	if (!rc)
		rc = torch_replay(feed, sp->device, &change, 1, o, &out->match, err);
	if (!rc && out->match.kind == TORCH_MATCH_NONE)
		rc = err_set(err, -ENOENT,
		    "the trace has none of PyTorch's blocks, so its requests on %s cannot be "
		    "replayed",
		    sp->name);
	if (!rc) {
		out->torch.asked = true;
		out->original.event = out->match.refused;
		out->peak_live = sp->model->peak.bytes;
		out->headroom = o->headroom;
		if (o->refused)
			replay_set_replayed(out, feed, sp->name,
			    &(struct replay_point){.requested = o->refusal.size,
				.time_ns = o->refusal.block.time_ns,
				.event = o->refusal.block.serial,
				.stack = o->refusal.block.stack});
		if (request->python)
			rc = ask_own(request, &stream, out, err);
	}
	through_stream_close(&stream);
	return rc;
}

bool replay_wants_torch(const struct replay_request *request)
{
	return request->python || request->alloc_conf;
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
		    "PyTorch had no blocks on a device in this trace: there is nothing to replay");
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
