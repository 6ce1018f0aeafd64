/*
 * batch_prealloc.c - memory taken up front for the largest batch, or for the largest context: few
 * large blocks of one size, acquired in one go and kept ever since.
 */
#include <math.h>

#include "detect/registry.h"

#define FEW_BLOCKS 512u
/* Taken in one go: within this part of the time since the process began. */
#define GO_PART 8u
/* Or until now nothing came and went besides. That no work was seen since says less than that there
 * was some, and they were left alone: they must be fewer. */
#define IDLE_SHARE (1.0 / 32)
#define IDLE_BLOCKS 128u
/* A single block may be anything that is large. */
#define SINGLE_STRENGTH 0.7

static bool is_uniform(const struct place *p)
{
	return p->freed_count == 0 && place_is_uniform(p);
}

/* What a place acquired between two moments, as far as its steps tell. */
static double acquired(const struct place *p, uint64_t from, uint64_t until)
{
	double sum = 0;

	for (uint32_t i = 0; i < p->step_count; i++) {
		const struct step *s = &p->steps[i];
		uint64_t start = s->time_ns > from ? s->time_ns : from;
		uint64_t end = s->last_ns < until ? s->last_ns : until;

		if (start > end)
			continue;
		sum += s->last_ns > s->time_ns ? (double)s->bytes * (double)(end - start) /
						     (double)(s->last_ns - s->time_ns)
					       : (double)s->bytes;
	}
	return sum;
}

/* A layer's parameters come one after the other, of several sizes, and what requests leave behind
 * comes between their work; a pool's blocks come among themselves. */
static bool is_interleaved(const struct places *places, const struct place *p)
{
	double alike = 0, others = 0;

	for (uint32_t i = 0; i < places->count; i++) {
		const struct place *o = &places->list[i];

		*(is_uniform(o) && o->largest == p->largest ? &alike : &others) +=
		    acquired(o, p->first_ns, p->last_ns);
	}
	return others > alike / 4;
}

/* All of its blocks are alike, live, and came in one go. */
static bool is_pool(const struct scene *scene, const struct place *p, uint64_t whole)
{
	return p->step_count && is_uniform(p) && p->live_count <= FEW_BLOCKS &&
	       p->live_bytes >= whole / 20 &&
	       (p->last_ns - p->first_ns <= scene->places->moment_ns / GO_PART ||
		   (!scene->space && p->live_count <= IDLE_BLOCKS &&
		       scene_worked_since(scene, p->first_ns) < IDLE_SHARE)) &&
	       !is_interleaved(scene->places, p);
}

static int judge(const struct scene *scene, struct finding *out)
{
	const struct places *places = scene->places;
	uint64_t whole = places->live_bytes + places->map_bytes, most = 0, blocks = 0, block = 0,
		 bytes = 0;
	struct finding f = {
	    .cause = "batch-prealloc", .fix = "batch-prealloc", .blame = PLACE_NONE};

	if (!scene->failed || !whole)
		return DETECT_SILENT;
	for (uint32_t i = 0; i < places->count; i++) {
		const struct place *p = &places->list[i];

		if (!is_pool(scene, p, whole) ||
		    (scene->roles && scene->roles[i] == ROLE_WEIGHTS_LOAD))
			continue;
		/* How much of it was of use is not recorded; the first block was to begin with. */
		finding_claim(&f, i, RULE_KEEP_BYTES, p->largest, p->live_bytes - p->largest);
		bytes += p->live_bytes;
		blocks += p->live_count;
		if (p->live_bytes > most) {
			most = p->live_bytes;
			block = p->largest;
			f.blame = i;
		}
		if (i == places->failed && scene->failure)
			f.request_bytes = scene->failure->size;
	}
	if (f.blame == PLACE_NONE)
		return DETECT_SILENT;
	f.strength =
	    dominance((double)bytes, (double)(whole - bytes)) * (blocks > 1 ? 1 : SINGLE_STRENGTH);
	finding_evidence(&f, "taken up front, and kept", (double)bytes, "bytes");
	finding_evidence(&f, "in blocks", (double)blocks, "blocks");
	finding_evidence(&f, "of this size each", (double)block, "bytes");
	finding_evidence(&f, "all else that lived", (double)(whole - bytes), "bytes");
	*out = f;
	return 0;
}

const struct detector detect_batch_prealloc = {
    .name = "batch-prealloc",
    .claim = "a pool for the largest batch was taken up front",
    .judge = judge,
};
