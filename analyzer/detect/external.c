/*
 * external.c - the limit is below what the program needs and always needed, or somebody else holds
 * the memory: without that the refused request, no larger than those that were granted before,
 * would have fitted. Our own memory neither grew nor jumped.
 */
#include <math.h>

#include "detect/registry.h"
#include "model/burst.h"

/* So much of all blocks must have been given back before it is work, and not loading. */
#define WORKED_SHARE 0.8
/* From this many times the largest before on, it is a jump of our own. */
#define OUT_OF_SERIES 4.0
/* What was never seen to fit may as well be one's own doing. */
#define NEVER_FITTED 0.75

/* The largest block that the place ever gave back: what lives may be of the very work that the
 * refused request is of. Of a place that keeps all, the largest. */
static uint64_t largest_before(const struct place *p)
{
	uint64_t largest = 0;

	for (uint32_t i = 0; i < p->step_count; i++)
		if (p->steps[i].freed_count && p->steps[i].max > largest)
			largest = p->steps[i].max;
	return largest ? largest : p->largest;
}

/* One that is larger than any before is our own doing, in part. */
static double in_series(const struct scene *scene, double least)
{
	const struct places *places = scene->places;
	uint64_t size = scene->failure ? scene->failure->size : 0, before;

	if (places->failed == PLACE_NONE)
		return 1;
	before = largest_before(&places->list[places->failed]);
	return size > before && before ? fmax(least, (double)before / (double)size) : 1;
}

static double of_others(const struct scene *scene, struct finding *f, uint64_t live)
{
	double strength;

	if (!scene->others.known || !scene->others.bytes)
		return 0;
	strength = dominance((double)scene->others.bytes, (double)live) * in_series(scene, 0.5);
	if (strength <= 0)
		return 0;
	f->other_bytes = scene->others.bytes;
	f->alone = true;
	f->start_ns = scene->model->first_ns ? scene->model->first_ns : 1;
	finding_evidence(f, "held by others", (double)scene->others.bytes, "bytes");
	finding_evidence(f, "live blocks of our own", (double)live, "bytes");
	if (scene->limit_bytes)
		finding_evidence(f, "of all there is", (double)scene->limit_bytes, "bytes");
	return strength;
}

/* Of what lives, the part that neither grows nor stays behind. */
static double settled(const struct places *places, uint64_t live)
{
	uint64_t rising = 0;

	for (uint32_t i = 0; i < places->count; i++) {
		const struct place *p = &places->list[i];

		if (p->size.grows || p->keep.stays)
			rising += p->live_bytes;
	}
	return live ? 1 - fmin(1, (double)rising / (double)live) : 0;
}

/* The same work as ever, and a limit below it. */
static double of_limit(const struct scene *scene, struct finding *f, uint64_t live)
{
	const struct model *m = scene->model;
	uint64_t size = scene->failure ? scene->failure->size : 0, wanting;
	uint64_t room =
	    scene->limit_bytes > scene->usage_bytes ? scene->limit_bytes - scene->usage_bytes : 0;
	uint64_t trend = rise_trend(&m->rise, m->peak_bytes);
	/* A limit of its own is known to within a segment, of which there was none to be had. */
	bool own = scene->own_limit.known;
	/* As much had lived before, or more than there would be room for in any order. */
	bool fitted =
	    live + size <= m->peak_bytes ||
	    (scene->slack.known && m->peak_bytes > live + scene->slack.bytes + scene->slack.below);
	struct burst burst;
	double strength;

	if (!scene->space || !size || scene_churn(scene) < WORKED_SHARE || (room >= size && !own) ||
	    (!fitted && scene->slack.known && scene->slack.bytes + scene->slack.below >= size) ||
	    in_series(scene, 0) < 1 / OUT_OF_SERIES)
		return 0;
	wanting = own ? size : size - room;
	if (own && wanting > scene->own_limit.kept_back)
		return 0;
	/* That as much fitted before says little of what still grew: it was at the limit then, too.
	 */
	strength = settled(scene->places, live) * (fitted ? 1 : NEVER_FITTED * in_series(scene, 0));
	if (!fitted && burst_find(&m->timeline, m->first_ns, scene->places->moment_ns, &burst))
		strength *= 0.5;
	f->steady = true;
	f->trend_bytes = fitted ? 0 : trend;
	f->other_bytes = wanting;
	finding_evidence(f, "live blocks, with what was refused", (double)(live + size), "bytes");
	finding_evidence(f, "most that had lived before", (double)m->peak_bytes, "bytes");
	finding_evidence(f, "by which it still grew, as a trend", (double)f->trend_bytes, "bytes");
	finding_evidence(f, "the limit", (double)scene->limit_bytes, "bytes");
	if (scene->own_limit.known)
		finding_evidence(f, "free on the device, and not allowed by a limit of PyTorch's",
		    (double)scene->own_limit.kept_back, "bytes");
	return strength;
}

static int judge(const struct scene *scene, struct finding *out)
{
	uint64_t live = scene->places->live_bytes + scene->places->map_bytes;
	struct finding others = {.cause = "external", .fix = "external", .blame = PLACE_NONE},
		       limit = others;

	if (!scene->failed)
		return DETECT_SILENT;
	others.strength = of_others(scene, &others, live);
	limit.strength = of_limit(scene, &limit, live);
	*out = limit.strength > others.strength ? limit : others;
	return out->strength > 0 ? 0 : DETECT_SILENT;
}

const struct detector detect_external = {
    .name = "external",
    .claim = "somebody else holds the memory, or the limit is below what is always needed",
    .judge = judge,
};
