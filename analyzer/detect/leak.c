/*
 * leak.c - blocks of finished work that stay: their count grows, their size does not, every
 * generation leaves as many, and no buffer elsewhere grows in proportion (then they would be the
 * material of a prompt).
 */
#include <math.h>

#include "detect/graphs.h"
#include "detect/late.h"
#include "detect/pool.h"
#include "detect/purpose.h"
#include "util/tuned.h"

TUNED(double, STARTING, 0.3, "an index that is read at start keeps all that it makes, too");
TUNED(double, STARTED_TIMES, 5, "requests give back a fifth at least, most of them more than half");
TUNED(double, STARTED_BLOCKS, 30.0,
    "a request that keeps a list of fifty releases a block or two: a name, a buffer");
TUNED(unsigned, RELEASED_PART, 16u,
    "a sixteenth of the blocks may be released for a reason of its own");

static bool candidate(const struct scene *scene, const struct callsite *p)
{
	const struct callsites *callsites = scene->callsites;

	return p->survivors.stays &&
	       (!p->size.grows || (p->relations.index_of != CALLSITE_NONE &&
				      &callsites->list[p->relations.index_of] == p));
}

/* Return how long a block of the call site lives until its release; or until the next, where too
 * few were released to say what is normal. */
static uint64_t normal_life(const struct callsite *p)
{
	if (p->facts.freed_count > p->facts.total_count / RELEASED_PART)
		return p->facts.life_ns / p->facts.freed_count;
	return p->facts.total_count > 1
		   ? (p->facts.last_ns - p->facts.first_ns) / (p->facts.total_count - 1)
		   : 0;
}

/* Return the used share of what the arenas grew by since there were half as many: the rest is free,
 * and holds no object of finished work. */
static double in_use(const struct scene *scene, const struct callsite *p)
{
	const struct scene_slack *slack = &scene->slack;
	double arenas = 0, used;

	if (!p->arena_share.any || p->facts.map_bytes < p->facts.live_bytes / 2 ||
	    !slack->arenas_steady)
		return 1;
	for (uint32_t i = 0; i < scene->callsites->count; i++)
		arenas += scene->callsites->list[i].arena_share.any
			      ? (double)scene->callsites->list[i].facts.map_bytes
			      : 0;
	used = arenas - (double)slack->arenas - (double)slack->arenas_steady;
	return fmax(0, fmin(1, used / (arenas / 2)));
}

/* Facts that contradict a leak: each multiplies the strength by its factor. */
enum { FEEDS, LISTED, STORED, IMPORTED, QUEUED, STOPPED, ONE_CALL, PERHAPS_ONE_CALL };

TUNED_TABLE(struct tuned_number,
    DOUBTS, [FEEDS] = {"feeds", 0.4, "what feeds a growing buffer is released with it"},
    [LISTED] = {"listed", 0.3, "what each step goes through again is not finished work"},
    [STORED] = {"stored", 0.4, "a store, or a copy of what is in use, is kept on purpose"},
    [IMPORTED] = {"imported", 0.1, "modules stay for good, however they go on coming"},
    [QUEUED] = {"queued", 0.3, "what waits is released when its turn comes"},
    [STOPPED] = {"stopped", 0.4, "later work left nothing there: it was of a start, or of a phase"},
    [ONE_CALL] = {"one_call", 0.3, "no call ended since it began: nothing is finished"},
    [PERHAPS_ONE_CALL] = {"perhaps_one_call", 0.85, "the same, where calls are not certain"});

/* Return 0 to 1. `finished`: how sure any work ended. */
static double shape(const struct scene *scene, const struct late_work *work,
    const struct callsite *p, double finished)
{
	bool feeds = p->relations.feeds != CALLSITE_NONE;
	struct late late;
	bool one_call = p->call.open == OPEN_CALL_YES ||
			late_at(scene, work, (uint32_t)(p - scene->callsites->list), &late);
	const bool holds[] = {[FEEDS] = feeds,
	    [LISTED] = !feeds && p->relations.listed_by != CALLSITE_NONE,
	    [STORED] = scene_in_store(scene, p) || p->relations.copies_of != CALLSITE_NONE ||
		       scene_kept_with_store(scene, p) ||
		       graphs_have(scene, (uint32_t)(p - scene->callsites->list)),
	    [IMPORTED] = callsite_is_import(p),
	    [QUEUED] = p->backlog.grows,
	    [STOPPED] = scene_has_stopped(scene, p),
	    [ONE_CALL] = one_call,
	    [PERHAPS_ONE_CALL] = !one_call && p->call.open != OPEN_CALL_NO};
	double strength = finding_stays(p) * in_use(scene, p);

	for (size_t i = 0; i < sizeof(DOUBTS) / sizeof(*DOUBTS); i++)
		if (holds[i])
			strength *= DOUBTS[i].value;
	return strength * finished;
}

/* Few large blocks may just be put in place, as weights and pools are, so that nothing is finished:
 * nothing else came and went since the first one, or no more than is read on the way, layer after
 * layer. Returns 0 to 1: more blocks of one size are likelier to be one for each request. */
static double set_up(const struct scene *scene, const struct callsite *p)
{
	uint32_t callsite = (uint32_t)(p - scene->callsites->list);
	struct pool pool;

	if (p->survivors.count > MODEL_BLOCKS)
		return 0;
	if (scene->space)
		return (purpose_of(scene, callsite) != PURPOSE_UNTOLD ||
			   scene_converts(scene, callsite) != CALLSITE_NONE) &&
		       scene_few_large(scene, p) &&
		       !scene_worked_before(scene, p->facts.first_ns, p->survivors.bytes, 0) &&
		       scene_is_quiet_since(scene, p->facts.first_ns);
	if (scene_is_read_in(scene, callsite) || scene_reads_weights(scene, p))
		return 1;
	if (pool_at(scene, callsite, &pool))
		return pool.sure;
	return !scene_sizes_drift(p) && !scene_sizes_scatter(p) && !scene_many_alike(scene, p) &&
	       !scene_worked_between(scene, p) &&
	       (!callsite_is_uniform(p) || p->survivors.count <= POOL_ALIKE) &&
	       scene_few_large(scene, p) && scene_is_quiet_since(scene, p->facts.first_ns);
}

/* Return how surely the program had begun to work when the call site grew: what reads an index or a
 * model in releases hardly anything. */
static double started(const struct scene *scene, const struct callsite *p)
{
	uint32_t callsite = (uint32_t)(p - scene->callsites->list);

	if (scene_made_again(scene, p))
		return STARTING;
	/* Thousands of blocks are an index only where a name says that it is loaded. */
	if (scene->space || scene->work || scene_sizes_drift(p) || scene_worked_between(scene, p) ||
	    (scene_many_alike(scene, p) && purpose_of(scene, callsite) != PURPOSE_WEIGHTS))
		return 1;
	return fmin(
	    1, STARTING + fmax(STARTED_TIMES * scene_worked_since(scene, p->facts.first_ns),
			      STARTED_BLOCKS * scene_released_since(scene, p->facts.first_ns)));
}

/* Threads that do not end hold their stacks, which are no blocks of the program. */
static bool threads(const struct scene *scene, struct finding *out)
{
	uint64_t stacks = scene->limit.stacks;
	double stay = scene_threads_stay(scene);

	if (stay <= 0 || stacks <= scene_live(scene))
		return false;
	*out = (struct finding){.blame = scene->callsites->failed,
	    .form = FORM_STACKS,
	    .other_bytes = stacks,
	    .strength = stay * dominance((double)stacks, (double)scene_live(scene))};
	finding_evidence(out, FACT_STACKS, (double)stacks);
	finding_evidence(out, FACT_THREADS, (double)scene->limit.threads);
	return true;
}

/* Threads that ended keep their stacks until somebody joins them. */
static bool unjoined(const struct scene *scene, struct finding *out)
{
	const struct scene_limit *l = &scene->limit;
	double never = scene_threads_unjoined(scene);

	if (never <= 0 || l->unjoined <= scene_live(scene))
		return false;
	*out = (struct finding){
	    .blame = scene_asks_for_thread(scene) ? scene->callsites->failed : CALLSITE_NONE,
	    .form = FORM_UNJOINED,
	    .other_bytes = l->unjoined,
	    .strength =
		never * dominance((double)l->unjoined, (double)(scene_live(scene) + l->stacks))};
	finding_evidence(out, FACT_STACKS_LEFT, (double)l->unjoined);
	finding_evidence(out, FACT_THREADS_ENDED, (double)l->threads_ended);
	return true;
}

/* Files in memory that the program made and did not remove are mapped by nobody. */
static bool files(const struct scene *scene, struct finding *out)
{
	const struct callsites *callsites = scene->callsites;
	uint64_t left = scene->others.left, most = 0;
	struct finding f = {
	    .blame = CALLSITE_NONE, .form = FORM_FILES, .other_bytes = left, .alone = true};

	if (!scene->end.failed || left <= scene_live(scene))
		return false;
	/* The recorder saw the files of a full file system when they were mapped. In a cgroup,
	 * write() may have made them, and it does not record write(). */
	for (uint32_t i = 0; scene->work && i < callsites->count; i++)
		finding_blame_larger(&f, i, callsites->list[i].facts.total_bytes, &most);
	f.strength = dominance((double)left, (double)scene_live(scene));
	finding_evidence(&f, FACT_FILES_LEFT, (double)left);
	if (f.blame != CALLSITE_NONE)
		finding_evidence(
		    &f, FACT_FILES_EACH, (double)callsites->list[f.blame].facts.largest);
	*out = f;
	return true;
}

int detect_leak(const struct scene *scene, struct finding *out)
{
	const struct callsites *callsites = scene->callsites;
	struct finding f = {.blame = CALLSITE_NONE};
	uint64_t most = 0, whole = scene_live(scene), index;
	double weighted = 0;
	struct late_work work = late_work_of(scene);
	const struct callsite *main;
	/* A device that released nothing has finished nothing: it is still being loaded. */
	double finished = scene->space ? fmin(1, STARTING + STARTED_TIMES * scene_churn(scene)) : 1;

	if (unjoined(scene, out) || threads(scene, out) || files(scene, out))
		return 0;
	for (uint32_t i = 0; i < callsites->count; i++) {
		const struct callsite *p = &callsites->list[i];

		if (!candidate(scene, p) || p->survivors.bytes < whole / 1000)
			continue;
		/* A table at the same line is as young as its last doubling. If its entries had
		 * been released, it would have stayed at its early size. */
		if (p->relations.index_of == i)
			finding_claim(&f, i, RULE_KEEP_BYTES, p->survivors.before / 2,
			    p->survivors.bytes - p->survivors.before / 2);
		else
			finding_claim(&f, i, RULE_EXPIRE, normal_life(p), p->survivors.bytes);
		weighted += shape(scene, &work, p, finished) * started(scene, p) *
			    (1 - 0.7 * scene_in_flight(scene, i, p->survivors.bytes)) *
			    (scene->work ? 1 : 1 - 0.5 * set_up(scene, p)) *
			    (double)p->survivors.bytes;
		finding_blame_larger(&f, i, p->survivors.bytes, &most);
	}
	if (f.blame == CALLSITE_NONE || f.bytes < whole / 100)
		return DETECT_SILENT;
	f.strength = fmin(1, weighted / (double)f.bytes);
	index = finding_claim_tables(scene, &f, candidate);
	main = &callsites->list[f.blame];
	finding_evidence(&f, FACT_LEAK_BLOCKS, (double)main->survivors.count);
	finding_evidence(&f, FACT_BLOCK_BYTES, (double)main->survivors.bytes);
	/* Before a checkpoint, only survivors were counted. */
	if (main->facts.first_ns > callsites->replaced_until_ns || !callsites->replaced_until_ns)
		finding_evidence(&f, FACT_LEAK_SHARE,
		    (double)main->survivors.count /
			(double)(main->facts.total_count ? main->facts.total_count : 1));
	finding_evidence(&f, FACT_SIZE_EARLY, (double)main->size.first);
	finding_evidence(&f, FACT_SIZE_LATE, (double)main->size.last);
	finding_evidence(&f, FACT_LEAK_EVEN, main->survivors.even);
	if (index)
		finding_evidence(&f, FACT_LEAK_TABLE, (double)index);
	*out = f;
	return 0;
}
