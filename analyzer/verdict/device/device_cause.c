#include "verdict/device/device_cause.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/callsite/open_call.h"
#include "model/space/space_map.h"
#include "util/num.h"
#include "util/tuned.h"
#include "verdict/device/device_replay.h"
#include "verdict/judge/decide.h"
#include "verdict/judge/judge.h"
#include "verdict/request/flow.h"
#include "verdict/request/waited.h"
#include "verdict/wording/fixes.h"
#include "verdict/wording/words.h"

TUNED(uint64_t, UNACCOUNTED_PART, 2,
    "with most of the used memory in no event, the cause may be there as well");

static uint32_t callsite_of_stats(
    const struct callsites *callsites, const struct space_map *map, uint32_t stats)
{
	uint32_t stack = stats == MAP_HOLE ? UINT32_MAX : map->callsites.items[stats].stack;

	return callsites_of_stack(callsites, STACK_STATS_HEAP, stack);
}

/* Compute the holes of segments with live blocks, and the call site that borders on most. */
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

			if (p->callsite != MAP_HOLE)
				continue;
			slack->bytes += size;
			slack->holes++;
			if (size > slack->largest)
				slack->largest = size;
			before = k > s->first ? callsite_of_stats(callsites, map, p[-1].callsite)
					      : CALLSITE_NONE;
			after = k + 1 < s->first + s->count
				    ? callsite_of_stats(callsites, map, p[1].callsite)
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

	/* The driver does not show how it divides its memory. */
	if (sp->kind != SPACE_TORCH)
		return 0;
	rc = space_map_make(then, sp, f->size, &map);
	if (!rc)
		rc = slack_of(&map, callsites, slack);
	space_map_fini(&map);
	/* Free memory at the level below counts only where that level was asked. */
	if (f->segment && f->free_known)
		slack->below = f->free;
	return rc;
}

/* Say why the recording cannot judge the device, or NULL. The host's gap does not matter. */
static const char *gap_of(const struct device_report *d)
{
	uint64_t used = d->total - d->free;

	if (!d->free_known || d->free > d->total || d->ledger.unaccounted <= 0 ||
	    (uint64_t)d->ledger.unaccounted <= used / UNACCOUNTED_PART)
		return NULL;
	return d->others_known
		   ? "most of the device's memory in use is explained by no event"
		   : "most of the device's memory in use is explained by no event of this "
		     "process, and what others held was not seen";
}

/* Return how much more of the device others hold than when this process came to it. */
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

/* Return usage in the measure of the limit that refused. */
static uint64_t usage_of(const struct device_report *d)
{
	if (d->capped)
		return d->segment_bytes;
	return d->free_known && d->total > d->free ? d->total - d->free : d->explained;
}

/* Drop the host's answer, but keep what was recorded. */
static void drop_host(
    struct verdict_result *r, const struct feed *feed, const struct device_failure *f)
{
	const struct device_report *d = r->devices.first;

	r->failure = (struct failure_view){.kind = FAILURE_CUDA_OOM,
	    .pid = r->failure.pid,
	    .time_ns = f->time_ns,
	    .requested_bytes = f->size,
	    .limit = d->ledger.limit,
	    .limit_bytes = d->ledger.limit_bytes,
	    .usage_bytes = usage_of(d),
	    .stack = stack_view_of(feed, f->stack)};
	r->verdict = (struct verdict){.cause = CAUSE_UNKNOWN};
	r->ranking.count = r->what_ifs.count = 0;
}

/* Read the call sites of the space that refused, and the requests that worked there. */
static int read_moment(struct verdict_result *r, struct feed feed, const struct model *then,
    const struct space *sp, const struct failure *refused, struct err *err)
{
	struct flow_of_space of = {.feed = feed, .then = then, .space = sp};
	int rc;

	callsites_free(r->callsites);
	r->callsites = NULL;
	rc = callsites_refused(sp->model, refused, &r->callsites, err);
	if (!rc)
		rc = open_call_read(feed, r->callsites, err);
	of.callsites = r->callsites;
	return rc ? rc : flow_read_space(r, &of, &r->flow, err);
}

static int judge(struct verdict_result *r, struct feed feed, const struct device_refusal *refusal,
    struct err *err)
{
	const struct device_failure *f = &refusal->failure;
	const struct model *then = refusal->then;
	struct device_report *d = r->devices.first;
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
	    .replaced = {went->count, went->bytes},
	    .held = &r->flow.held,
	    .end = {.failed = true, .refused = &refused},
	    .limit = {.bytes = r->failure.limit_bytes,
		.usage = r->failure.usage_bytes,
		.own = {.known = d->capped && d->free_known, .kept_back = d->free}}};
	struct device_replay replay = {
	    .failed_ns = f->time_ns, .device = d, .notes = &r->notes, .words = &r->arena};
	const struct judge_trial trial = {device_replay, &replay};
	int rc;

	if (!sp)
		return 0;
	refused.serial = sp->model->run.serial;
	rc = read_moment(r, feed, then, sp, &refused, err);
	if (rc)
		return rc;
	scene.model = sp->model;
	scene.callsites = replay.callsites = r->callsites;
	rc = set_slack(then, sp, f, r->callsites, &scene.slack);
	if (rc)
		return err_set(err, rc, "no memory for the device's map");
	scene.slack.bytes = num_less(scene.slack.bytes, d->hidden_bytes);
	scene.others = (struct scene_others){
	    .known = d->others_known, .bytes = d->others, .grown = others_grown(then, sp, d)};
	rc = judge_scene(r, &scene, &trial, feed, &r->ranking, err);
	if (rc)
		return rc;
	r->coverage.gap = gap_of(d);
	decide(r, true,
	    r->coverage.gap ? "Run it under `whyoom run`, which asks what other "
			      "processes hold."
			    : NULL);
	return waited_read(r, feed, &refused, err);
}

int device_cause(struct verdict_result *r, struct feed feed, const struct device_refusal *refusal,
    struct err *err)
{
	struct verdict *v = &r->verdict;
	int rc;

	drop_host(r, &feed, &refusal->failure);
	rc = judge(r, feed, refusal, err);
	if (!rc && device_account(r, r->devices.first, refusal->then))
		rc = err_set(err, -ENOMEM, "no memory for the device's map");
	if (rc)
		return rc;
	r->ledger = r->devices.first->ledger;
	decide_what_ifs(r);
	if (v->cause == CAUSE_UNKNOWN) {
		device_unexplained(r->devices.first, v, &r->arena);
	} else {
		fixes_for(r, v->cause, v->fixes, &v->fix_count, &r->arena);
		v->summary = words_summary(r);
	}
	return v->summary ? 0 : -ENOMEM;
}
