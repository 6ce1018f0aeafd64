/*
 * prompt_growth.c - buffers that get larger from step to step: rebuilt each time (a prompt of all
 * that was said), enlarged in place (realloc), or copied into a larger one; and the material that
 * is kept to make them. Also a growing number of equal blocks held at once, and blocks that are as
 * large as the input of their request, in whatever order requests come.
 */
#include <math.h>

#include "detect/detect.h"
#include "util/num.h"
#include "util/text/str.h"
#include "util/tuned.h"

TUNED(unsigned, PIECES_TIMES, 4u,
    "what a buffer is joined from, and its copies, are of its own order");
TUNED(uint64_t, CONTAINERS_MOST, 4u, "the old and the new one, and what is put into it");
TUNED(unsigned, ENLARGED_PART, 16u, "CPython's list, which grows least, grows by an eighth");
TUNED(unsigned, ENTRY_TIMES, 32u,
    "an entry takes 8 bytes of the list and ten to twenty times that itself");
TUNED(uint64_t, RUN_RISES, 6u, "of seven numbers in any order each is larger once in 5040 times");
TUNED(double, RUN_BEYOND, 1.5, "half as much again as all before is no chance of a longer one");
TUNED(double, RUN_FACTOR, 1.4,
    "a capacity grows by half, or twofold; seven equal parts by 1.38 each");
TUNED(double, RUN_STRENGTH, 0.9, "of one request only is seen that it grows");
TUNED(double, FOLLOWS_STRENGTH, 0.85, "any other line may follow its input by chance");

static bool candidate(const struct callsite *p)
{
	return p->size.grows && p->relations.index_of == CALLSITE_NONE;
}

/* Return the latest run of a line, with the refused request as its next block. In a run each block
 * is at least as large as the block before it. */
static struct stack_stats_run run_at(const struct scene *scene, const struct callsite *p)
{
	struct stack_stats_run run = p->size.run;
	uint32_t callsite = (uint32_t)(p - scene->callsites->list);
	uint64_t asked = callsite == scene->callsites->failed ? scene_asked(scene) : 0;

	if (asked > run.last) {
		run.last = asked;
		run.rises++;
	}
	return run;
}

/* True if one request makes larger and larger blocks, beyond what any before it had made: a buffer
 * that is replaced by itself and a part, or copies of what has come so far. What realloc()
 * enlarges, or its owner by a factor, is one object, and says nothing of the next request. */
static bool run_goes_beyond(const struct scene *scene, const struct callsite *p)
{
	struct stack_stats_run run = run_at(scene, p);

	return p->relations.index_of == CALLSITE_NONE && !p->survivors.stays &&
	       p->facts.regrown <= p->facts.total_count / 2 && !callsite_is_import(p) &&
	       run.before && run.rises >= RUN_RISES &&
	       (double)run.last >= RUN_BEYOND * (double)run.before &&
	       (double)run.last < pow(RUN_FACTOR, (double)run.rises) * (double)run.first;
}

/* The same where no request before it had grown like that. */
static bool grows_within(const struct scene *scene, const struct callsite *p)
{
	return !candidate(p) && run_goes_beyond(scene, p);
}

/* Is the refused request the next of this call site's series? It is made at that call site; or, if
 * its line was reached too seldom for a series, at the same function as the series, whose last
 * blocks were of its order (a copy of what the line before made). */
static bool is_next(const struct scene *scene, const struct callsite *p)
{
	const struct callsite *failed;

	if (!scene->end.refused || scene->callsites->failed == CALLSITE_NONE)
		return false;
	failed = &scene->callsites->list[scene->callsites->failed];
	if (failed == p)
		return true;
	return failed->facts.step_count < 4 && str_same(failed->function, p->function) &&
	       str_same(failed->file, p->file) && scene->end.refused->size / 4 <= p->size.last &&
	       scene->end.refused->size >= p->size.last / 4;
}

/* All of the run's blocks rise, but it is a single run. */
static double shape_of_run(struct stack_stats_run run)
{
	double times = (double)run.last / (double)run.first;

	return RUN_STRENGTH * (0.5 + 0.5 * fmin(1, log2(times) / 2));
}

/* Return the strength for piles of blocks that do not grow themselves, where each pile was
 * released. What several requests hold at the same time is no pile of one. */
static double shape_of_piles(const struct scene *scene, const struct callsite *p)
{
	const struct held_callsite *h =
	    scene->held ? &scene->held->callsites[p - scene->callsites->list] : NULL;
	double of_one = h && h->alike > 1 ? (double)h->largest / (double)h->bytes : 1;
	double times = (double)p->buildup.now / (double)p->buildup.first;
	double many = p->buildup.times >= 8 ? 1 : 0.2 + 0.1 * (double)p->buildup.times;

	return of_one * many * (0.5 + 0.5 * fmin(1, log2(times) / 2));
}

static double shape(const struct scene *scene, const struct callsite *p)
{
	double times = fmax(1, (double)p->size.last / (double)(p->size.first ? p->size.first : 1));
	double many = p->size.count >= 8 ? 1 : 0.2 + 0.1 * (double)p->size.count;
	double much = 0.5 + 0.5 * fmin(1, log2(times) / 2);

	/* The growing material is kept beside them, or a store keeps them as snapshots. */
	double strength;
	bool kept = (p->survivors.stays &&
			(p->relations.copies_of != CALLSITE_NONE || scene_in_store(scene, p))) ||
		    scene_keeps_series(p);

	if (grows_within(scene, p))
		return shape_of_run(run_at(scene, p));
	if (!p->size.grows)
		return shape_of_piles(scene, p);
	strength = (0.3 + 0.7 * fmax(0, p->size.tau)) * many * much;
	if (run_goes_beyond(scene, p))
		strength = fmax(strength, shape_of_run(run_at(scene, p)));
	return strength * (kept ? 0.4 : 1);
}

/* Claim the material: kept bytes that grow into the buffers, or are put together at every step. */
static uint64_t claim_material(
    const struct callsites *callsites, struct finding *f, uint32_t *largest, bool *listed)
{
	uint64_t kept = 0, most = 0;

	*largest = CALLSITE_NONE;
	*listed = false;
	for (uint32_t i = 0; i < callsites->count; i++) {
		const struct callsite *p = &callsites->list[i];
		bool feeds = p->relations.feeds != CALLSITE_NONE &&
			     candidate(&callsites->list[p->relations.feeds]);

		if (!feeds && p->relations.listed_by == CALLSITE_NONE)
			continue;
		*listed |= !feeds;
		kept += p->survivors.bytes;
		/* Half of the first eighth is its typical size, as a block's early size is. */
		finding_claim(f, i, RULE_KEEP_BYTES, p->survivors.before / 2,
		    p->survivors.bytes - p->survivors.before / 2);
		if (p->survivors.bytes > most) {
			most = p->survivors.bytes;
			*largest = i;
		}
	}
	return kept;
}

/* Return the growth of arenas behind an array: the entries that it lists may lie in the
 * interpreter's arenas, those that come and go with it. An entry takes 8 bytes of the array, and
 * itself ten or twenty times that. */
static uint64_t grown_in_arenas(const struct scene *scene, const struct callsite *p)
{
	uint64_t used = p->facts.map_bytes - callsite_unused(p), most, grown;

	if (!p->arena_share.any || !scene_maps_in_passing(scene, p))
		return 0;
	most = ENTRY_TIMES * (p->facts.largest - p->size.first);
	grown = (uint64_t)((double)used * (1 - (double)p->size.first / (double)p->size.last));
	return num_least(grown, most);
}

/* Claim that a pile holds as much as the first one, and asks for no more. */
static uint64_t claim_pile(const struct scene *scene, struct finding *f, uint32_t callsite)
{
	const struct callsite *p = &scene->callsites->list[callsite];
	uint64_t grown = p->buildup.now - p->buildup.first;

	finding_claim_without(f, scene->callsites, callsite, grown);
	if (callsite != scene->callsites->failed || !scene->end.refused)
		return grown;
	f->request_bytes = scene->end.refused->size;
	return grown + f->request_bytes;
}

/* Claim that the run's blocks were as large as its first. */
static uint64_t claim_run(const struct scene *scene, struct finding *f, uint32_t callsite)
{
	const struct callsite *p = &scene->callsites->list[callsite];
	uint64_t first = p->size.run.first;
	uint64_t grown = num_less(p->facts.live_bytes, p->facts.live_count * first);

	finding_claim_without(f, scene->callsites, callsite, grown);
	if (callsite != scene->callsites->failed || scene_asked(scene) <= first)
		return grown;
	f->request_bytes = scene_asked(scene) - first;
	return grown + f->request_bytes;
}

/* Claim call sites whose blocks or piles grow. Returns the bytes of the largest, f->blame. */
static uint64_t claim_growers(const struct scene *scene, struct finding *f)
{
	const struct callsites *callsites = scene->callsites;
	uint64_t most = 0;

	for (uint32_t i = 0; i < callsites->count; i++) {
		const struct callsite *p = &callsites->list[i];
		uint64_t grown = p->size.grown_bytes, weight;

		if (!candidate(p)) {
			weight = grows_within(scene, p) ? claim_run(scene, f, i)
				 : p->buildup.grows	? claim_pile(scene, f, i)
							: 0;
			finding_blame_larger(f, i, weight, &most);
			continue;
		}
		/* Blocks that stay were capped one by one; of blocks that come and go, a turn would
		 * have held as much as an early one, pieces included. */
		if (p->survivors.stays) {
			finding_claim(f, i, RULE_CAP_SIZE, p->size.first, grown);
		} else {
			uint64_t pieces = PIECES_TIMES * (p->facts.largest - p->size.first);
			/* The interpreter's arenas have one size, and serve others, too. */
			uint64_t blocks =
			    p->facts.live_bytes - (p->arena_share.any ? p->facts.map_bytes : 0);

			grown = blocks > p->size.first ? blocks - p->size.first : 0;
			grown = num_least(grown, pieces);
			/* Or as many as live at once, each grown. */
			grown = num_most(grown, p->size.grown_bytes);
			grown += grown_in_arenas(scene, p);
			finding_claim_without(f, callsites, i, grown);
		}
		weight = p->size.last - p->size.first;
		weight = num_most(weight, grown);
		if (is_next(scene, p) && scene->end.refused->size > p->size.first) {
			f->request_bytes = scene->end.refused->size - p->size.first;
			weight += f->request_bytes;
		}
		finding_blame_larger(f, i, weight, &most);
	}
	return most;
}

static bool follows_input(const struct scene *scene, struct finding *f)
{
	const struct callsites *callsites = scene->callsites;
	const struct proportion_found *found = &callsites->proportion;
	const struct callsite *p;

	if (!scene_amplifies(scene, found->callsite) || callsites->list[found->callsite].size.grows)
		return false;
	p = &callsites->list[found->callsite];
	*f = (struct finding){.blame = found->callsite};
	finding_claim_without(
	    f, callsites, found->callsite, num_less(p->facts.live_bytes, found->typical));
	if (found->callsite == callsites->failed && scene->end.refused &&
	    scene->end.refused->size > found->typical)
		f->request_bytes = scene->end.refused->size - found->typical;
	/* A model that is known as one is sure to follow its input. */
	f->strength =
	    scene->roles && scene->roles[found->callsite] != ROLE_NONE ? 1 : FOLLOWS_STRENGTH;
	finding_evidence(f, FACT_GROWTH_TYPICAL, (double)found->typical);
	finding_evidence(f, FACT_GROWTH_LATE, (double)found->target);
	finding_evidence(f, FACT_GROWTH_PAIRS, (double)found->pairs);
	finding_evidence(f, FACT_GROWTH_FIT, found->fit);
	finding_evidence(f, FACT_GROWTH_INPUT, (double)found->input);
	return true;
}

static void explain(const struct scene *scene, struct finding *f, uint64_t kept, bool listed)
{
	const struct callsite *main = &scene->callsites->list[f->blame];

	if (grows_within(scene, main)) {
		struct stack_stats_run run = run_at(scene, main);

		f->form = FORM_WITHIN;
		finding_evidence(f, FACT_GROWTH_EARLY, (double)run.first);
		finding_evidence(f, FACT_GROWTH_LATE, (double)run.last);
		finding_evidence(f, FACT_GROWTH_RUN, (double)run.rises);
		finding_evidence(f, FACT_GROWTH_BEFORE, (double)run.before);
	} else if (main->size.grows) {
		finding_evidence(f, FACT_GROWTH_EARLY, (double)main->size.first);
		finding_evidence(f, FACT_GROWTH_LATE, (double)main->size.last);
		finding_evidence(f, FACT_GROWTH_RISING, (main->size.tau + 1) / 2);
	} else if (main->buildup.grows) {
		finding_evidence(f, FACT_PILE_FIRST, (double)main->buildup.first);
		finding_evidence(f, FACT_PILE_LAST, (double)main->buildup.now);
		finding_evidence(f, FACT_PILE_TIMES, (double)main->buildup.times);
		finding_evidence(f, FACT_PILE_RECORDS, (double)main->buildup.records);
	}
	finding_evidence(f, FACT_GROWTH_BLOCKS, (double)main->facts.total_count);
	if (kept)
		finding_evidence(f, FACT_GROWTH_KEPT, (double)kept);
	if (listed)
		finding_evidence(f, FACT_GROWTH_REBUILT,
		    (double)scene->callsites
			->list[main->relations.listed_by == CALLSITE_NONE
				   ? f->blame
				   : main->relations.listed_by]
			.facts.total_count);
	if (f->request_bytes)
		finding_evidence(f, FACT_GROWTH_REFUSED, (double)scene->end.refused->size);
}

/* True if one container is enlarged by a factor, so that its next size does not fit beside it. A
 * buffer made anew for larger and larger input may have such sizes, too, but asks for hardly more
 * than before. */
static bool is_doubling(const struct scene *scene, const struct callsite *p)
{
	bool next = is_next(scene, p);
	uint64_t size = next ? scene->end.refused->size : p->facts.largest;

	return p->size.grows && p->size.geometric && p->facts.live_count <= CONTAINERS_MOST &&
	       size >= scene_live(scene) / 4 &&
	       (!next || size >= p->facts.largest + p->facts.largest / ENLARGED_PART);
}

int detect_prompt_growth(const struct scene *scene, struct finding *out)
{
	const struct callsites *callsites = scene->callsites;
	struct finding f = {.blame = CALLSITE_NONE};
	uint64_t whole = scene_live(scene), most, kept;
	uint32_t material;
	bool listed;

	if (follows_input(scene, out))
		return 0;
	most = claim_growers(scene, &f);
	kept = claim_material(callsites, &f, &material, &listed);
	/* Less than a hundredth of everything is noise. */
	if ((f.blame == CALLSITE_NONE && material == CALLSITE_NONE) ||
	    (most < whole / 100 && f.bytes < whole / 100))
		return DETECT_SILENT;
	/* The buffers are small beside the listed material: the list is the evidence. */
	if (material != CALLSITE_NONE && listed &&
	    most < callsites->list[material].survivors.bytes / 5) {
		const struct callsite *list =
		    &callsites->list[callsites->list[material].relations.listed_by == CALLSITE_NONE
					 ? f.blame
					 : callsites->list[material].relations.listed_by];
		f.blame = material;
		f.strength = 0.95 * shape(scene, list);
	} else {
		f.strength = shape(scene, &callsites->list[f.blame]);
	}
	explain(scene, &f, kept, listed);
	if (is_doubling(scene, &callsites->list[f.blame]))
		f.form = FORM_DOUBLING;
	*out = f;
	return 0;
}
