/*
 * space_level.c - the levels of devices, pools and PyTorch's allocator, and the part of a device
 * that no event explains: contexts, modules, libraries' own memory.
 */
#include <errno.h>
#include <string.h>

#include "model/space/space_parts.h"
#include "util/num.h"

static bool is_device_key(uint32_t key)
{
	return key == TRACE_LEVEL_DEV_FREE || key == TRACE_LEVEL_DEV_TOTAL ||
	       key == TRACE_LEVEL_DEV_OTHERS;
}

/* Return the bytes that a space of pools holds: the driver's number, which may be old, but at least
 * the live bytes. Memory of a graph's nodes comes only with its launch. */
static uint64_t pool_bytes(const struct space *sp)
{
	uint64_t sum = 0, live;

	if (!sp)
		return 0;
	for (size_t i = 0; i < sp->pools.count; i++)
		sum += sp->pools.items[i].reserved;
	live = sp->kind == SPACE_POOL ? sp->model->blocks.bytes : 0;
	return sum > live ? sum : live;
}

uint64_t spaces_explained(const struct spaces *s, uint32_t device)
{
	const struct space *cuda = spaces_of(s, SPACE_CUDA, device);

	return (cuda ? cuda->model->blocks.bytes : 0) +
	       pool_bytes(spaces_of(s, SPACE_POOL, device)) +
	       pool_bytes(spaces_of(s, SPACE_GRAPH, device));
}

static void thin_out(struct space *sp)
{
	for (uint32_t i = 0; i < sp->sample_count; i += 2)
		sp->samples[i / 2] = sp->samples[i];
	sp->sample_count = (sp->sample_count + 1) / 2;
	sp->sample_stride *= 2;
}

static void add_sample(struct space *cuda, const struct device_sample *now)
{
	if (cuda->sample_skipped++ % cuda->sample_stride)
		return;
	if (cuda->sample_count == DEVICE_SAMPLES)
		thin_out(cuda);
	cuda->samples[cuda->sample_count++] = *now;
}

/* Note what was there when the recorder came, at the first look. */
static void note_before(struct space *cuda, const struct device_sample *now)
{
	if (cuda->before.known || !cuda->model->base.attached)
		return;
	cuda->before.known = true;
	cuda->before.bytes = now->unattributed > 0 ? (uint64_t)now->unattributed : 0;
}

/* Take a sample: the driver was just asked for the device's free memory. */
static void take_sample(struct spaces *s, struct space *cuda)
{
	const struct levels *l = &cuda->model->measured.levels;
	struct device_sample now = {.time_ns = s->now_ns};

	if (!levels_get(l, TRACE_LEVEL_DEV_FREE, &now.free) ||
	    !levels_get(l, TRACE_LEVEL_DEV_TOTAL, &now.total))
		return;
	now.others_known = levels_get(l, TRACE_LEVEL_DEV_OTHERS, &now.others);
	now.explained = spaces_explained(s, cuda->device);
	now.unattributed = (int64_t)(now.total - now.free - now.explained - now.others);
	cuda->last_sample = now;
	note_before(cuda, &now);
	add_sample(cuda, &now);
}

/* False if the driver sees a part of the device, and the observer sees all of it. */
static bool same_device(const struct device_sample *driver, const struct device_sample *outside)
{
	uint64_t whole = outside->total;

	return !driver->total || (driver->total <= whole && whole - driver->total <= whole / 8);
}

void space_take_outside(struct spaces *s, struct space *cuda)
{
	struct device_sample now;

	if (cuda->kind != SPACE_CUDA || cuda->device >= DEVICES_MAX)
		return;
	now = s->outside[cuda->device];
	if (!now.total || !same_device(&cuda->last_sample, &now))
		return;
	now.explained = spaces_explained(s, cuda->device);
	/* The process uses the device, but the observer lists it under another number. */
	now.others_known = now.own_known || (now.others_known && !now.explained);
	if (now.others_known)
		levels_set(
		    &cuda->model->measured.levels, TRACE_LEVEL_DEV_OTHERS, now.others, now.time_ns);
	else
		now.others = 0;
	now.unattributed = (int64_t)((now.own_known ? now.own : now.total - now.free - now.others) -
				     now.explained);
	if (now.own_known && now.explained && now.unattributed >= 0) {
		/* The two samples differ a little in time: keep the largest rest. */
		if (!cuda->overhead_known || (uint64_t)now.unattributed > cuda->overhead)
			cuda->overhead = (uint64_t)now.unattributed;
		cuda->overhead_known = true;
	}
	note_before(cuda, &now);
	add_sample(cuda, &now);
}

void space_forget_contexts(struct space *cuda)
{
	cuda->context_bytes = cuda->module_bytes = 0;
	cuda->first_context.known = false;
	cuda->last_sample.total = 0;
}

bool spaces_others(const struct spaces *s, const struct space *cuda, uint64_t *bytes)
{
	const struct levels *l = &cuda->model->measured.levels;
	uint64_t free_bytes, total, own;

	*bytes = 0;
	if (!levels_get(l, TRACE_LEVEL_DEV_OTHERS, bytes))
		return false;
	own = spaces_explained(s, cuda->device) + cuda->overhead;
	if (cuda->overhead_known && levels_get(l, TRACE_LEVEL_DEV_FREE, &free_bytes) &&
	    levels_get(l, TRACE_LEVEL_DEV_TOTAL, &total) && total > free_bytes + own &&
	    total - free_bytes - own > *bytes)
		*bytes = total - free_bytes - own;
	return true;
}

static int take_pool(struct space *sp, const struct event *e)
{
	uint64_t reserved, allocated = 0, *slot;

	if (!event_level(e, TRACE_LEVEL_RESERVED, &reserved))
		return 0;
	event_level(e, TRACE_LEVEL_ALLOCATED, &allocated);
	slot = map_put(&sp->pool_index, e->u.space.handle);
	if (!slot)
		return -ENOMEM;
	if (!*slot) {
		if (vec_push(&sp->pools, (struct pool_level){.object = e->u.space.handle}))
			return -ENOMEM;
		*slot = sp->pools.count;
	}
	sp->pools.items[*slot - 1].reserved = reserved;
	sp->pools.items[*slot - 1].allocated = allocated;
	return 0;
}

void space_forget_pool(struct space *sp, uint64_t object)
{
	const uint64_t *slot = map_find(&sp->pool_index, object);

	if (slot)
		sp->pools.items[*slot - 1].reserved = sp->pools.items[*slot - 1].allocated = 0;
}

int space_take_levels(struct spaces *s, struct space *sp, const struct event *e)
{
	struct space *cuda =
	    sp->kind == SPACE_CUDA ? sp
	    : sp->kind == SPACE_POOL || sp->kind == SPACE_GRAPH || sp->kind == SPACE_TORCH
		? spaces_of(s, SPACE_CUDA, sp->device)
		: NULL;
	uint64_t free_bytes;

	for (uint32_t i = 0; i < e->level_count; i++) {
		const struct event_level *l = &e->levels[i];

		if (!is_device_key(l->key))
			levels_set(&sp->model->measured.levels, l->key, l->value, e->time_ns);
		else if (cuda)
			levels_set(&cuda->model->measured.levels, l->key, l->value, e->time_ns);
	}
	if (cuda && event_level(e, TRACE_LEVEL_DEV_FREE, &free_bytes))
		take_sample(s, cuda);
	return 0;
}

/* True if the event is a context, a context's limit, or code, by the driver's names. */
static bool is_context(const struct event *e)
{
	return strstr(e->u.space.api, "Ctx") != NULL;
}

/* Before the first context the driver could not be asked. */
static void take_first_context(struct space *cuda)
{
	const struct device_sample *now = &cuda->last_sample;

	if (now->total < now->free + now->explained)
		return;
	cuda->first_context.known = true;
	cuda->first_context.unexplained = now->total - now->free - now->explained;
	cuda->first_context.others_known = now->others_known;
	cuda->first_context.others = now->others;
}

/* Take the begin or the end of a capture. False: another call. */
static bool take_capture(struct spaces *s, const struct event *e)
{
	struct space_captures *c = &s->captures;
	const char *api = e->u.space.api;
	bool begins = api && strncmp(api, "cuStreamBegin", 13) == 0;
	uint32_t i = 0;

	if (!begins && (!api || strcmp(api, "cuStreamEndCapture") != 0))
		return false;
	while (i < c->open && c->threads[i] != e->thread)
		i++;
	if (!begins && i < c->open)
		c->threads[i] = c->threads[--c->open];
	if (begins && c->open < CAPTURES_MAX)
		c->threads[c->open++] = e->thread;
	if (begins && !c->count++) {
		c->first_launches = e->u.space.offset;
		c->first_ns = e->time_ns;
	}
	c->launches = num_less(e->u.space.offset, c->first_launches);
	return true;
}

bool space_is_captured(const struct spaces *s, const struct event *e)
{
	for (uint32_t i = 0; i < s->captures.open; i++)
		if (s->captures.threads[i] == e->thread)
			return true;
	return false;
}

int space_on_call(struct spaces *s, struct space *sp, const struct event *e)
{
	bool first = sp->kind == SPACE_CUDA && !sp->last_sample.total;
	uint64_t before, after;
	int rc = 0;

	if (sp->kind == SPACE_POOL || sp->kind == SPACE_GRAPH)
		rc = take_pool(sp, e);
	if (!rc)
		rc = space_take_levels(s, sp, e);
	if (rc || sp->kind != SPACE_CUDA || !e->u.space.api || take_capture(s, e))
		return rc;
	if (event_level(e, TRACE_LEVEL_DEV_FREE_BEFORE, &before) &&
	    event_level(e, TRACE_LEVEL_DEV_FREE, &after)) {
		int64_t taken = (int64_t)(before - after);

		if (is_context(e))
			sp->context_bytes += taken;
		else
			sp->module_bytes += taken;
	} else if (first && sp->last_sample.total && is_context(e)) {
		take_first_context(sp);
	}
	return 0;
}
