/*
 * concurrency.c - many requests at once: what ran out is the sum of working sets that overlap. Each
 * is released at its end, and one of them alone would have fitted.
 */
#include <math.h>

#include "detect/registry.h"
#include "detect/threads.h"

static bool is_working_set(const struct scene *scene, const struct place *p)
{
	return place_is_working_set(p, scene->places->moment_ns);
}

static int judge(const struct scene *scene, struct finding *out)
{
	const struct places *places = scene->places;
	struct threads_held held;
	struct finding f = {.cause = "concurrency", .fix = "concurrency", .blame = PLACE_NONE};
	uint64_t whole = places->live_bytes + places->map_bytes, most = 0;
	double kept;

	if (!scene->failed || !threads_held(scene, is_working_set, 0, &held) || held.alike < 2 ||
	    held.sum < whole / 100)
		return DETECT_SILENT;
	/* One at a time: of each place what the largest of them held. */
	kept = (double)held.largest / (double)held.sum;
	for (uint32_t i = 0; i < places->count; i++) {
		const struct place *p = &places->list[i];
		uint64_t one = (uint64_t)(kept * (double)p->live_bytes);

		if (!is_working_set(scene, p))
			continue;
		if (!p->live_count)
			one = p->largest;
		finding_claim(
		    &f, i, RULE_KEEP_BYTES, one, p->live_bytes > one ? p->live_bytes - one : 0);
		if (p->live_bytes > most) {
			most = p->live_bytes;
			f.blame = i;
		}
	}
	if (f.blame == PLACE_NONE)
		return DETECT_SILENT;
	/* Two of them are enough for the shape; what share of it all they are is for the rank. */
	f.strength = (0.6 + 0.4 * (1 - kept)) * fmin(1, 0.5 + (double)held.sum / (double)whole);
	finding_evidence(&f, "threads with a working set then", (double)held.alike, "1");
	finding_evidence(&f, "their working sets together", (double)held.sum, "bytes");
	finding_evidence(&f, "the largest of them", (double)held.largest, "bytes");
	*out = f;
	return 0;
}

const struct detector detect_concurrency = {
    .name = "concurrency",
    .claim = "the working sets of several requests overlap",
    .judge = judge,
};
