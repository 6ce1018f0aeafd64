/* device_cause.c - see device_cause.h. */
#include "verdict/device/device_cause.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/callsite/open_call.h"
#include "model/space/space_map.h"
#include "util/num.h"
#include "verdict/device/device_replay.h"
#include "verdict/judge/decide.h"
#include "verdict/judge/judge.h"
#include "verdict/request/flow.h"
#include "verdict/request/waited.h"

static uint32_t callsite_of_site(
    const struct callsites *callsites, const struct space_map *map, uint32_t stats)
{
	uint32_t stack =
	    stats == MAP_NO_STACK_STATS ? UINT32_MAX : map->stats_list.items[stats].stack;

	return callsites_of_stack(callsites, STACK_STATS_HEAP, stack);
}

/* The holes of segments that hold live blocks, and whose blocks border on most of them. */
static int slack_of(
    const struct space_map *map, const struct callsites *callsites, struct scene_slack *slack)
{
	uint64_t *pinned = calloc(callsites->count + 1u, sizeof(*pinned)), most = 0;

	if (!pinned)
		return -ENOMEM;
	slack->known = true;
	slack->pinned_by = CALLSITE_NONE;
	for (size_t i = 0; i < map->segments.count; i++) {
		const struct map_segment *s = &map->segments.items[i];

		for (size_t k = s->first; s->live_blocks && k < s->first + s->count; k++) {
			const struct map_piece *p = &map->pieces.items[k];
			uint64_t size = p->end - p->start;
			uint32_t before, after;

			if (p->stats != MAP_NO_STACK_STATS)
				continue;
			slack->bytes += size;
			slack->holes++;
			if (size > slack->largest)
				slack->largest = size;
			before = k > s->first ? callsite_of_site(callsites, map, p[-1].stats)
					      : CALLSITE_NONE;
			after = k + 1 < s->first + s->count
				    ? callsite_of_site(callsites, map, p[1].stats)
				    : CALLSITE_NONE;
			if (before != CALLSITE_NONE)
				pinned[before] += size;
			if (after != CALLSITE_NONE && after != before)
				pinned[after] += size;
		}
	}
	for (uint32_t i = 0; i < callsites->count; i++) {
		if (pinned[i] > most) {
			most = pinned[i];
			slack->pinned_by = i;
		}
	}
	free(pinned);
	return 0;
}

static int set_slack(const struct model *then, const struct space *sp,
    const struct device_failure *f, const struct callsites *callsites, struct scene_slack *slack)
{
	struct space_map map = {0};
	int rc;

	/* What the driver itself does with its addresses is not ours to know. */
	if (sp->kind != SPACE_TORCH)
		return 0;
	rc = space_map_make(then, sp, f->size, &map);
	if (!rc)
		rc = slack_of(&map, callsites, slack);
	space_map_fini(&map);
	/* Where nobody was asked below, what is free there was of no use. */
	if (f->segment && f->free_known)
		slack->below = f->free;
	return rc;
}

/* What the host's record lacks says nothing of the device, and the reverse. */
static const char *gap_of(const struct device_report *d)
{
	uint64_t used = d->total - d->free;

	if (!d->free_known || d->free > d->total || d->ledger.unaccounted <= 0 ||
	    (uint64_t)d->ledger.unaccounted <= used / 2)
		return NULL;
	return d->others_known
		   ? "most of the device's memory in use is explained by no event"
		   : "most of the device's memory in use is explained by no event of this "
		     "process, and what others held was not seen";
}

/* By how much others hold more of the device than when this process came to it. */
static uint64_t others_grown(
    const struct model *then, const struct space *sp, const struct device_report *d)
{
	const struct space *cuda = spaces_of(then->spaces, SPACE_CUDA, sp->device);

	if (!cuda || !d->others_known)
		return 0;
	if (cuda->first_context.known && cuda->first_context.others_known)
		return num_less(d->others, cuda->first_context.others);
	for (uint32_t i = 0; i < cuda->sample_count; i++)
		if (cuda->samples[i].others_known)
			return num_less(d->others, cuda->samples[i].others);
	return 0;
}

int device_cause(struct verdict_result *r, struct feed feed, const struct model *then,
    const struct device_failure *f, struct err *err)
{
	const char *name = r->model->spaces->list[f->space]->name;
	const struct alike *went = &r->model->spaces->list[f->space]->model->total.freed_stats;
	const struct space *sp = spaces_find(then->spaces, name);
	struct failure refused = {.time_ns = f->time_ns,
	    .size = f->size,
	    .stack = f->stack,
	    .thread = f->thread,
	    .result = f->result,
	    .count = f->count};
	struct scene scene = {.space = name,
	    .replaced.count = went->count,
	    .replaced.bytes = went->bytes,
	    .end.refused = &refused,
	    .end.failed = true,
	    .limit.bytes = r->failure.limit_bytes,
	    .limit.usage = r->failure.usage_bytes,
	    .held = &r->flow.held};
	int rc;

	if (!sp)
		return 0;
	refused.serial = sp->model->run.serial;
	scene.model = sp->model;
	callsites_free(r->callsites);
	r->callsites = NULL;
	rc = callsites_refused(sp->model, &refused, &r->callsites, err);
	if (!rc)
		rc = open_call_read(feed, r->callsites, err);
	if (!rc)
		rc = flow_read_space(r, feed, then, sp, r->callsites, err);
	if (rc)
		return rc;
	scene.callsites = r->callsites;
	rc = set_slack(then, sp, f, r->callsites, &scene.slack);
	if (rc)
		return err_set(err, rc, "no memory for the device's map");
	scene.slack.bytes = num_less(scene.slack.bytes, r->devices.first->hidden_bytes);
	scene.others = (struct scene_others){.known = r->devices.first->others_known,
	    .bytes = r->devices.first->others,
	    .grown = others_grown(then, sp, r->devices.first)};
	if (r->devices.first->capped && r->devices.first->free_known)
		scene.limit.own = (struct scene_own_limit){true, r->devices.first->free};
	rc = judge_scene(r, &scene, device_replay, feed, err);
	if (rc)
		return rc;
	r->coverage.gap = gap_of(r->devices.first);
	decide(r, true,
	    r->coverage.gap ? "Run it under `whyoom run`, which asks what other "
			      "processes hold."
			    : NULL);
	return waited_read(r, feed, &refused, err);
}
