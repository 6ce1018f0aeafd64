/*
 * fragmentation.c - enough is free, but not in one piece: the holes between live blocks, which the
 * allocator cannot hand back, would with what is free below have held the refused request.
 */
#include <math.h>

#include "detect/registry.h"

/* The holes in one piece would have held it, but no setting of the allocator would have made them
 * one. */
#define NOT_CURED 0.8

static int judge(const struct scene *scene, struct finding *out)
{
	const struct scene_slack *slack = &scene->slack;
	uint64_t size = scene->failure ? scene->failure->size : 0;
	uint64_t live = scene->places->live_bytes + scene->places->map_bytes;
	struct finding f = {.cause = "fragmentation", .fix = "fragmentation"};
	double enough;

	if (!slack->known || !size || slack->below >= size ||
	    slack->bytes < (live + slack->bytes) / 100)
		return DETECT_SILENT;
	/* In one piece they would have held this request, but not the work that went before. */
	if (scene->model->peak_bytes > live + slack->bytes + slack->below)
		return DETECT_SILENT;
	enough = (double)(slack->bytes + slack->below) / (double)size;
	if (enough < 1)
		return DETECT_SILENT;
	/* Twice as much as was asked for is no near miss. */
	f.strength = 0.7 + 0.3 * fmin(1, log2(enough));
	if (slack->replayed && !slack->fits)
		f.strength *= NOT_CURED;
	f.slack_bytes = slack->bytes;
	f.steady = true;
	f.trend_bytes = rise_trend(&scene->model->rise, scene->model->peak_bytes);
	f.replayed = slack->replayed && slack->fits;
	f.headroom = slack->headroom;
	f.blame = slack->pinned_by;
	finding_evidence(&f, "the refused request", (double)size, "bytes");
	finding_evidence(&f, "in holes between live blocks", (double)slack->bytes, "bytes");
	finding_evidence(&f, "the holes", (double)slack->holes, "1");
	finding_evidence(&f, "the largest of them", (double)slack->largest, "bytes");
	finding_evidence(&f, "free below, for a new segment", (double)slack->below, "bytes");
	finding_evidence(&f, "live blocks", (double)live, "bytes");
	finding_evidence(
	    &f, "by which these still grew, as a trend", (double)f.trend_bytes, "bytes");
	if (f.replayed)
		finding_evidence(&f, "to spare, had the holes been in one piece all along",
		    (double)slack->headroom, "bytes");
	*out = f;
	return 0;
}

const struct detector detect_fragmentation = {
    .name = "fragmentation",
    .claim = "enough is free, in pieces that are too small",
    .judge = judge,
};
