/*
 * state_retention.c - memory that is kept on purpose and without a bound: entries under the frames
 * of a known store (a checkpointer, a cache), of whatever size; and, in any program, copies of a
 * state that stays or grows beside them, one for each step.
 */
#include <math.h>

#include "detect/graphs.h"
#include "util/num.h"
#include "util/tuned.h"

TUNED(double, COPIES_STRENGTH, 0.95,
    "a copy is told from the next generation by its original, which one line of both hides");
TUNED(double, SNAPSHOTS_STRENGTH, 0.8, "what they are taken of is not known");
TUNED(double, STEPS_SHARE, 0.2, "a step gives back a fifth of what it takes at least");

/* Snapshots of something that grows, one for each step, while the steps' own work comes and goes.
 */
static bool is_snapshots(const struct scene *scene, const struct callsite *p)
{
	return !scene->space && scene_keeps_series(p) &&
	       scene_worked_since(scene, p->facts.first_ns) >= STEPS_SHARE;
}

static bool candidate(const struct scene *scene, const struct callsite *p)
{
	return p->survivors.stays && p->relations.index_of == CALLSITE_NONE &&
	       (p->relations.copies_of != CALLSITE_NONE || scene_in_store(scene, p) ||
		   scene_kept_with_store(scene, p) || is_snapshots(scene, p));
}

static double shape(const struct scene *scene, const struct callsite *p)
{
	double strength = finding_stays(p);

	if (p->relations.copies_of != CALLSITE_NONE)
		return strength * COPIES_STRENGTH;
	/* An open call fills it, and what it will do with the blocks is unknown. Snapshots of a
	 * single call's steps are snapshots nevertheless. */
	if (p->call.open == OPEN_CALL_YES &&
	    scene->roles[p - scene->callsites->list] != ROLE_CHECKPOINTER)
		strength *= 0.4;
	return is_snapshots(scene, p) ? strength * SNAPSHOTS_STRENGTH : strength;
}

static void explain(const struct scene *scene, struct finding *f, uint64_t tables)
{
	const struct callsite *main = &scene->callsites->list[f->blame];

	finding_evidence(f, FACT_KEPT_BLOCKS, (double)main->survivors.count);
	finding_evidence(f, FACT_BLOCK_BYTES, (double)main->survivors.bytes);
	finding_evidence(f, FACT_SIZE_EARLY, (double)main->size.first);
	finding_evidence(f, FACT_SIZE_LATE, (double)main->size.last);
	if (main->relations.copies_of != CALLSITE_NONE) {
		const struct callsite *state = &scene->callsites->list[main->relations.copies_of];

		finding_evidence(f, FACT_KEPT_ORIGINAL,
		    (double)(state->survivors.stays ? state->survivors.bytes : state->size.last));
	}
	if (scene_in_store(scene, main))
		finding_evidence(f, FACT_KEPT_STORES,
		    scene_share_of(scene, ROLE_CHECKPOINTER) + scene_share_of(scene, ROLE_CACHE));
	if (tables)
		finding_evidence(f, FACT_KEPT_TABLES, (double)tables);
}

int detect_state_retention(const struct scene *scene, struct finding *out)
{
	const struct callsites *callsites = scene->callsites;
	uint64_t whole = scene_live(scene), most = 0, newest;
	struct finding f = {.blame = CALLSITE_NONE};
	double weighted = 0;

	if (graphs_claim(scene, graphs_in_between(scene), out))
		return 0;
	for (uint32_t i = 0; i < callsites->count; i++) {
		const struct callsite *p = &callsites->list[i];

		if (!candidate(scene, p) || p->survivors.bytes < whole / 1000)
			continue;
		/* The newest copy is enough; a bounded store holds what it held early. */
		newest = p->size.grows || p->relations.copies_of != CALLSITE_NONE
			     ? p->facts.largest
			     : p->survivors.before / 2;
		newest = num_least(newest, p->survivors.bytes);
		finding_claim_without(&f, callsites, i, p->survivors.bytes - newest);
		weighted += shape(scene, p) * (double)p->survivors.bytes;
		finding_blame_larger(&f, i, p->survivors.bytes, &most);
		if (i == callsites->failed && scene->end.refused)
			f.request_bytes = scene->end.refused->size;
	}
	if (f.blame == CALLSITE_NONE || f.bytes < whole / 100)
		return DETECT_SILENT;
	f.strength = fmin(1, weighted / (double)f.bytes);
	explain(scene, &f, finding_claim_tables(scene, &f, candidate));
	*out = f;
	return 0;
}
