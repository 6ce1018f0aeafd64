/*
 * concurrency.c - many requests at once: what ran out is the sum of working sets that overlap. Each
 * is released at its end, and one of them alone would have fitted.
 */
#include <math.h>

#include "detect/registry.h"

/* Where so many of those that ended before left much behind, they are no working sets. */
#define LEFT_SHARE 0.5
/* Where none has ended yet, that so many alike are in flight is all the evidence. */
#define NONE_ENDED 0.85

/* One at a time: of each place what the largest of them held. */
static void claim(const struct scene *scene, struct finding *f)
{
	const struct places *places = scene->places;
	uint64_t most = 0;

	for (uint32_t i = 0; i < places->count; i++) {
		const struct held_place *h = &scene->held->places[i];
		const struct place *p = &places->list[i];
		uint64_t others = h->bytes - h->largest;

		if (h->alike < 2)
			continue;
		if (others > p->live_bytes)
			others = p->live_bytes;
		finding_claim(f, i, RULE_KEEP_BYTES, p->live_bytes - others, others);
		if (h->bytes > most) {
			most = h->bytes;
			f->blame = i;
		}
	}
}

static double ended_well(const struct requests_held *held)
{
	if (!held->finished)
		return NONE_ENDED;
	return held->left < LEFT_SHARE ? 1 : NONE_ENDED * (1 - held->left);
}

static int judge(const struct scene *scene, struct finding *out)
{
	const struct requests_held *held = scene->held;
	struct finding f = {.cause = "concurrency", .fix = "concurrency", .blame = PLACE_NONE};
	uint64_t whole = scene->places->live_bytes + scene->places->map_bytes;
	double kept;

	if (!scene->failed || !held || held->alike < 2 || held->sum < whole / 100)
		return DETECT_SILENT;
	claim(scene, &f);
	if (f.blame == PLACE_NONE)
		return DETECT_SILENT;
	kept = (double)held->largest / (double)held->sum;
	/* Two of them are enough for the shape; what share of it all they are is for the rank. */
	f.strength = (0.6 + 0.4 * (1 - kept)) * fmin(1, 0.5 + (double)held->sum / (double)whole) *
		     ended_well(held);
	finding_evidence(&f, "at work at once, each with a working set", (double)held->alike, "1");
	finding_evidence(&f, "their working sets together", (double)held->sum, "bytes");
	finding_evidence(&f, "the largest of them", (double)held->largest, "bytes");
	if (held->finished) {
		finding_evidence(
		    &f, "like them that had ended before", (double)held->finished, "1");
		finding_evidence(&f, "of those, that left much behind", held->left, "share");
	}
	*out = f;
	return 0;
}

const struct detector detect_concurrency = {
    .name = "concurrency",
    .claim = "the working sets of several requests overlap",
    .judge = judge,
};
