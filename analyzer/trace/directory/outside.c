/*
 * outside.c - merges a supervisor's samples of devices into the events of a process. The
 * supervisor's file is read along with the process's; only the latest use of each device by each
 * process is kept.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/reader.h"

/* Return N of the supervisor's space "gpu:N"; -1: another space. */
static int gpu_of(const struct trace *supervisor, uint32_t space)
{
	const char *name = space ? trace_space(supervisor, space) : NULL;
	char *end;
	unsigned long n;

	if (!name || strncmp(name, "gpu:", 4) != 0 || !isdigit((unsigned char)name[4]))
		return -1;
	n = strtoul(name + 4, &end, 10);
	return *end || n >= OUTSIDE_DEVICES ? -1 : (int)n;
}

/* CUDA_VISIBLE_DEVICES lists numbers or prefixes of UUIDs, up to the first invalid one; a device's
 * position is its number in the process. -1: not visible. */
static int number_in(const char *visible, int gpu, const char *uuid)
{
	for (int place = 0; *visible; place++) {
		size_t n = strcspn(visible, ",");
		char *end;
		long number = strtol(visible, &end, 10);

		if (end == visible + n && end != visible) {
			if (number < 0)
				return -1;
			if (number == gpu)
				return place;
		} else if (n > 4 && uuid && strncmp(visible, uuid, n) == 0) {
			return place;
		} else if (strncmp(visible, "GPU-", 4) != 0) {
			return -1;
		}
		visible += n + (visible[n] == ',');
	}
	return -1;
}

static int device_of(const struct trace *t, int gpu)
{
	const char *visible = trace_info(t, "env.CUDA_VISIBLE_DEVICES");
	char key[32];

	if (!visible)
		return gpu;
	snprintf(key, sizeof(key), "gpu.%d.uuid", gpu);
	return number_in(
	    visible, gpu, t->outside.supervisor ? trace_info(t->outside.supervisor, key) : NULL);
}

uint32_t trace_gpu(const struct trace *t, uint32_t device)
{
	for (int gpu = 0; gpu < (int)OUTSIDE_DEVICES; gpu++)
		if (device_of(t, gpu) == (int)device)
			return (uint32_t)gpu;
	return device;
}

void outside_set(struct trace *t, struct trace *supervisor)
{
	bool any = false;

	for (size_t i = 0; i < supervisor->defs.spaces.count && !any; i++)
		any = strncmp(supervisor->defs.spaces.items[i], "gpu:", 4) == 0;
	if (!any)
		return;
	t->outside.supervisor = supervisor;
	t->outside.shift_ns = (int64_t)(supervisor->facts.start_mono_ns - t->facts.start_mono_ns);
}

void outside_rewind(struct outside *o)
{
	o->started = o->held = o->ended = o->own_held = o->named = false;
	map_free(&o->used);
	memset(o->sums, 0, sizeof(o->sums));
}

static int take_use(struct trace *t, int gpu, const struct event *e, uint64_t bytes)
{
	struct outside *o = &t->outside;
	uint64_t key = (uint64_t)gpu << 32 | e->u.child.pid, *slot = map_put(&o->used, key);
	bool own = e->u.child.pid == t->facts.pid;

	if (!slot)
		return -ENOMEM;
	o->named = true;
	o->sums[gpu].all += bytes - *slot;
	if (own) {
		o->sums[gpu].own = bytes;
		o->sums[gpu].own_known |= bytes > 0;
	}
	*slot = bytes;
	if (!bytes)
		map_remove(&o->used, key);
	return 0;
}

static bool complete(struct trace *t, int gpu, const struct event *e)
{
	struct outside *o = &t->outside;
	int64_t at = (int64_t)(e->time_ns - event_level_value(e, TRACE_LEVEL_AGE_NS) +
			       (uint64_t)o->shift_ns);
	int device = device_of(t, gpu);

	if (device < 0 || device >= (int)OUTSIDE_DEVICES || at < 0)
		return false;
	memset(&o->next, 0, sizeof(o->next));
	o->next.kind = EV_OUTSIDE;
	o->next.time_ns = (uint64_t)at;
	o->next.u.device.number = (uint32_t)device;
	o->next.u.device.free = event_level_value(e, TRACE_LEVEL_DEV_FREE);
	o->next.u.device.total = event_level_value(e, TRACE_LEVEL_DEV_TOTAL);
	o->next.u.device.own = o->sums[gpu].own;
	o->next.u.device.others = o->sums[gpu].all - o->sums[gpu].own;
	o->next.u.device.own_known = o->sums[gpu].own_known;
	o->next.u.device.named = o->named;
	return o->next.u.device.total > 0;
}

/* Read the supervisor's next sample of a device that this process can see. */
static int advance(struct trace *t, struct err *err)
{
	struct outside *o = &t->outside;
	struct event e;
	int r;

	if (!o->started)
		trace_rewind(o->supervisor);
	o->started = true;
	while (!o->held && (r = trace_next(o->supervisor, &e, NULL)) > 0) {
		int gpu = e.kind == EV_LEVEL ? gpu_of(o->supervisor, e.space) : -1;

		if (gpu < 0)
			continue;
		if (!e.u.child.pid)
			o->held = complete(t, gpu, &e);
		else if (take_use(t, gpu, &e, event_level_value(&e, TRACE_LEVEL_DEV_USED)))
			return err_set(err, -ENOMEM, "%s: out of memory", t->source.path);
	}
	/* A truncated supervisor's file gave all that it has. */
	o->ended = !o->held;
	return 0;
}

/* Return the next event; a sample taken before it comes first. */
static int next_of_both(struct trace *t, struct event *out, struct err *err)
{
	struct outside *o = &t->outside;
	int r;

	if (!o->held && !o->ended && (r = advance(t, err)))
		return r;
	if (o->own_held)
		*out = o->own;
	else if ((r = trace_next(t, out, err)) <= 0)
		return r;
	o->own_held = o->held && o->next.time_ns <= out->time_ns;
	if (o->own_held) {
		o->held = false;
		o->own = *out;
		*out = o->next;
	}
	return 1;
}

/* The next event where the sizes of locked ranges or a supervisor's samples are added. Apart from
 * the usual case, whose every event would otherwise save this one's registers. */
static __attribute__((noinline)) int next_of_all(
    struct trace *t, struct event *out, struct err *err)
{
	int r;

	if (t->locked.any && locked_next(t, out))
		return 1;
	r = t->outside.supervisor ? next_of_both(t, out, err) : trace_next(t, out, err);
	if (r == 1 && t->locked.any && locked_see(t, out))
		return err_set(err, -ENOMEM, "%s: out of memory", t->source.path);
	return r;
}

int trace_next_outside(struct trace *t, struct event *out, struct err *err)
{
	if (t->locked.any || t->outside.supervisor)
		return next_of_all(t, out, err);
	return trace_next(t, out, err);
}
