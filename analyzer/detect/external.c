/*
 * external.c - somebody else holds the memory: without it the refused request, no larger than those
 * that were granted before, would have fitted.
 */
#include <math.h>

#include "detect/registry.h"

static int judge(const struct scene *scene, struct finding *out)
{
	const struct places *places = scene->places;
	uint64_t live = places->live_bytes + places->map_bytes;
	uint64_t size = scene->failure ? scene->failure->size : 0, before;
	struct finding f = {.cause = "external", .fix = "external", .blame = PLACE_NONE};

	if (!scene->failed || !scene->others.known || !scene->others.bytes)
		return DETECT_SILENT;
	f.strength = dominance((double)scene->others.bytes, (double)live);
	if (places->failed != PLACE_NONE) {
		before = places->list[places->failed].largest;
		/* One that is larger than any before is our own doing, in part. */
		if (size > before && before)
			f.strength *= fmax(0.5, (double)before / (double)size);
	}
	if (f.strength <= 0)
		return DETECT_SILENT;
	f.other_bytes = scene->others.bytes;
	f.start_ns = scene->model->first_ns ? scene->model->first_ns : 1;
	finding_evidence(&f, "held by others", (double)scene->others.bytes, "bytes");
	finding_evidence(&f, "live blocks of our own", (double)live, "bytes");
	if (scene->limit_bytes)
		finding_evidence(&f, "of all there is", (double)scene->limit_bytes, "bytes");
	*out = f;
	return 0;
}

const struct detector detect_external = {
    .name = "external",
    .claim = "somebody else holds the memory",
    .judge = judge,
};
