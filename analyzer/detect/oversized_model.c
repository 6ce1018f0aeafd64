/*
 * oversized_model.c - weights that exceed the memory: it ran out while everything was still being
 * put in place. No work had been done, since work releases its memory.
 */
#include <math.h>

#include "detect/graphs.h"
#include "detect/late.h"
#include "detect/pool.h"
#include "detect/purpose.h"
#include "util/num.h"
#include "util/tuned.h"

TUNED(double, LOADED_SHARE, 0.5, "loading gives back at most one staged copy for each parameter");
TUNED(double, WORKED_SHARE, 0.8, "a forward pass gives back nearly all blocks that it takes");
TUNED(double, LOADED_BYTES, 0.75, "there may be two staged copies, or one of twice the size");
TUNED(double, WORKED_BYTES, 0.9, "work gives back nearly all bytes");
TUNED(unsigned, SERVED_MIN, 8u,
    "eight requests that ended are no loading; a pool's threads may load a part each");
TUNED(double, SERVED_STRENGTH, 0.3,
    "after requests were served, weights are at most what a rival leaves unexplained");
TUNED(double, UNKNOWN_STRENGTH, 0.8,
    "where no frame is known to load weights, blocks of several sizes may be anything");
TUNED(unsigned, BLOCKS_MIN, 8u, "a model has more than a handful of parameters");
TUNED(double, HOST_LOADED_SHARE, 0.1,
    "reading a file gives back its buffers, a tenth of what is kept");
TUNED(
    double, HOST_WORKED_SHARE, 0.6, "between: imports give back most, but before the weights come");
TUNED(double, PASSED_ON, 0.4,
    "shared memory holds what processes pass on to each other, seldom a model");
TUNED(double, PLACED_STRENGTH, 0.65,
    "what is put in place at start may be a table or one request's, and need not be weights");
TUNED(unsigned, OF_A_PARAMETER, 4u,
    "a gradient, two or three states of an optimizer, and the parameter");
TUNED(double, GIVEN_BACK, 0.0625, "a sixteenth: setting up gives back nothing at all");

static bool is_parameter(const struct scene *scene, const struct callsite *p)
{
	uint32_t callsite = (uint32_t)(p - scene->callsites->list);

	return scene_few_large(scene, p) && !callsite_is_import(p) && !p->size.grows &&
	       (scene_reads_weights(scene, p) ||
		   scene_in_flight(scene, callsite, p->facts.live_bytes) <= POOL_IN_FLIGHT) &&
	       !p->call.repeats && p->owner != OWNER_RUNTIME &&
	       p->relations.index_of == CALLSITE_NONE &&
	       (p->facts.freed_count < p->facts.live_count || scene_is_staged(scene, p) ||
		   scene_reads_weights(scene, p)) &&
	       !callsite_is_working_set(p, scene->callsites->moment_ns);
}

/* True if the line's blocks are a pool's, rather than something that is read in. One block alone
 * may be either, and so may several whose names say that they are loaded; an interpreter's arenas
 * are alike, whatever they hold. */
static bool is_pool(const struct scene *scene, uint32_t callsite)
{
	struct pool pool;

	if (!pool_at(scene, callsite, &pool))
		return false;
	if (scene->callsites->list[callsite].arena_share.any)
		return true;
	switch (purpose_of(scene, callsite)) {
	case PURPOSE_WEIGHTS:
		return false;
	case PURPOSE_ROOM:
		return true;
	case PURPOSE_UNTOLD:
		break;
	}
	return pool.blocks > 1;
}

/* True if nothing was released since its first block, whatever its blocks are like, if they are no
 * pool: an index or a table that is read in. */
static bool is_put_in_place(const struct scene *scene, const struct callsite *p)
{
	uint32_t callsite = (uint32_t)(p - scene->callsites->list);

	return !scene->work && !callsite_is_import(p) && p->owner != OWNER_RUNTIME &&
	       num_less(p->facts.freed_count, p->facts.moved_count) < p->facts.live_count &&
	       scene_in_flight(scene, callsite, p->facts.live_bytes) <= POOL_IN_FLIGHT &&
	       (scene_made_again(scene, p) ||
		   (scene_is_quiet_since(scene, p->facts.first_ns) &&
		       (!scene_many_alike(scene, p) ||
			   purpose_of(scene, callsite) == PURPOSE_WEIGHTS))) &&
	       !scene_sizes_drift(p) && !scene_worked_between(scene, p) &&
	       !is_pool(scene, callsite);
}

/* True if the blocks may be a model's: several recurring sizes, at one line or several in turns. */
static bool is_varied(const struct scene *scene, const struct callsite *p)
{
	enum purpose purpose = purpose_of(scene, (uint32_t)(p - scene->callsites->list));

	if ((purpose != PURPOSE_UNTOLD && callsite_is_uniform(p)) || scene_many_alike(scene, p))
		return purpose == PURPOSE_WEIGHTS;
	return (!callsite_is_uniform(p) && !scene_sizes_drift(p) && !scene_sizes_scatter(p)) ||
	       scene_in_turns(scene, p) || scene_in_company(scene, p);
}

/* The very first weight was refused, larger than all that is in place: no work came before. */
static bool first_weight(const struct scene *scene, uint64_t loaded, struct finding *out)
{
	const struct callsites *callsites = scene->callsites;
	uint64_t live = scene_live(scene);
	struct finding f = {.blame = callsites->failed};

	if (!scene->end.refused || scene->end.refused->size <= loaded ||
	    (!scene_asks_for(scene, ROLE_WEIGHTS_LOAD) &&
		!(purpose_is_start(scene) &&
		    purpose_of(scene, callsites->failed) == PURPOSE_WEIGHTS)) ||
	    scene_worked_before(scene, callsites->moment_ns, scene->end.refused->size, 0))
		return false;
	f.request_bytes = scene->end.refused->size;
	f.start_ns = callsites->moment_ns;
	f.strength = dominance((double)f.request_bytes, (double)live);
	finding_evidence(&f, FACT_WEIGHT_ASKED, (double)f.request_bytes);
	finding_evidence(&f, FACT_WEIGHT_BEFORE, (double)loaded);
	finding_evidence(&f, FACT_LIVE_THEN, (double)live);
	if (f.strength <= 0)
		return false;
	*out = f;
	return true;
}

static int judge_host(const struct scene *scene, struct finding *out)
{
	const struct callsites *callsites = scene->callsites;
	struct finding f = {.blame = CALLSITE_NONE};
	uint64_t most = 0, varied = 0, known = 0, blocks = 0, loaded = 0, first = UINT64_MAX;
	uint64_t live = scene_live(scene), read = 0, one = 0, placed = 0, told = 0, largest;
	double churn, still, unknown;
	bool named;

	for (uint32_t i = 0; i < callsites->count; i++) {
		const struct callsite *p = &callsites->list[i];
		bool weights = scene->roles && scene->roles[i] == ROLE_WEIGHTS_LOAD, reads;
		bool mapped = callsite_is_mapped_files(p), in_place, parameter;

		if (p->facts.live_bytes < live / 1000)
			continue;
		in_place = is_put_in_place(scene, p);
		parameter = weights || is_parameter(scene, p);
		if (!parameter && !in_place)
			continue;
		placed += in_place ? p->facts.live_bytes : 0;
		told += purpose_of(scene, i) == PURPOSE_WEIGHTS ? p->facts.live_bytes : 0;
		reads = scene_reads_weights(scene, p);
		finding_claim(&f, i, RULE_KEEP_BYTES, 0, p->facts.live_bytes);
		largest = callsite_largest_live(p);
		one = largest > one ? largest : one;
		loaded += p->facts.live_bytes;
		blocks += p->facts.live_count;
		varied += parameter && is_varied(scene, p) ? p->facts.live_bytes : 0;
		if (reads || mapped || scene_is_read_in(scene, i))
			read += p->facts.live_bytes;
		/* A few files hold data that was there before; many may be one for each request. */
		if (weights || reads || (mapped && p->facts.live_count < BLOCKS_MIN))
			known += p->facts.live_bytes;
		if (p->facts.live_bytes >= live / 100 && p->facts.first_ns < first)
			first = p->facts.first_ns;
		/* Blame memory made from files before the files themselves. */
		finding_blame_larger(&f, i, p->facts.live_bytes / (mapped ? 2 : 1), &most);
	}
	if (first_weight(scene, loaded, out))
		return 0;
	named = known || told > loaded / 2;
	if (f.blame == CALLSITE_NONE || first == UINT64_MAX || (blocks < BLOCKS_MIN && !named))
		return DETECT_SILENT;
	churn = scene_worked_since(scene, first);
	/* Layer after layer; released blocks are the copies that each layer was read into. */
	still = read > loaded / 2 ? 1
				  : fmin(1, fmax(0, HOST_WORKED_SHARE - churn) /
						(HOST_WORKED_SHARE - HOST_LOADED_SHARE));
	/* One block has no layers: only its name says that it is loaded. */
	unknown = fmin(one > loaded / 2 ? PLACED_STRENGTH : UNKNOWN_STRENGTH,
	    0.25 + (double)varied / (double)loaded);
	unknown = fmax(unknown, PLACED_STRENGTH * (double)placed / (double)loaded);
	f.strength = still * fmax((double)known / (double)loaded, unknown);
	/* One block that holds most may be anything, unless a name says that it is loaded. */
	if (!named)
		f.strength *= dominance((double)(loaded - one), (double)one);
	if (scene_worked_before(
		scene, first, loaded, read ? callsites->list[f.blame].facts.largest : 0))
		f.strength *= 0.3;
	f.strength *= scene_beside_workers(scene, loaded);
	if (scene->work && !known)
		f.strength *= PASSED_ON;
	if (f.strength <= 0)
		return DETECT_SILENT;
	if (scene->end.refused && callsites->failed != CALLSITE_NONE &&
	    !scene_asks_for(scene, ROLE_KV_CACHE) &&
	    (callsites->list[callsites->failed].facts.live_bytes >= live / 1000 || known))
		f.request_bytes = scene->end.refused->size;
	f.start_ns = first;
	f.late = scene_made_again(scene, &callsites->list[f.blame]);
	finding_evidence(&f, FACT_LOADED, (double)loaded);
	finding_evidence(&f, FACT_BLOCK_COUNT, (double)blocks);
	finding_evidence(&f, FACT_LOADED_CHURN, churn);
	finding_evidence(&f, FACT_LIVE_BESIDE, (double)num_less(live, loaded));
	if (scene->limit.bytes)
		finding_evidence(&f, FACT_LIMIT, (double)scene->limit.bytes);
	*out = f;
	return 0;
}

/* True if another model is being put in place beside work: the refused request was for one of its
 * weights, and the call that asked has not ended, and keeps what it made. */
static bool is_loading(const struct scene *scene)
{
	const struct callsites *callsites = scene->callsites;
	const struct callsite *p;

	if (callsites->failed == CALLSITE_NONE || !scene_is_weights(scene, callsites->failed))
		return false;
	p = &callsites->list[callsites->failed];
	return p->call.open != OPEN_CALL_NO && p->facts.freed_count < p->facts.live_count;
}

static bool has_served(const struct scene *scene)
{
	return scene->held && scene->held->of && scene->held->finished >= SERVED_MIN &&
	       requests_source(scene->held->of) != REQUESTS_NONE &&
	       requests_source(scene->held->of) < REQUESTS_THREADS;
}

/* Return the bytes of blocks known as weights; 0: none, or nothing else was done. */
static uint64_t parameters(const struct scene *scene)
{
	uint64_t blocks = 0;

	for (uint32_t i = 0; scene->roles && i < scene->callsites->count; i++)
		if (scene->roles[i] == ROLE_WEIGHTS_LOAD)
			blocks += scene->callsites->list[i].facts.live_count;
	return scene_churn(scene) >= GIVEN_BACK ? blocks : 0;
}

static bool converted_weights(const struct scene *scene, uint32_t callsite)
{
	uint32_t of = scene_converts(scene, callsite);

	return of != CALLSITE_NONE && purpose_of(scene, of) != PURPOSE_ROOM;
}

/* True if requests in flight hold most of its blocks, as on the host; unless each loads a part. */
static bool is_in_flight(const struct scene *scene, uint32_t callsite)
{
	return !scene_is_weights(scene, callsite) &&
	       scene_in_flight(scene, callsite, scene->callsites->list[callsite].facts.live_bytes) >
		   POOL_IN_FLIGHT;
}

/* Return the share of room for work, by its name, that was still being made, or of its first piece
 * that was refused: what was put in place before fitted. */
static double room_asked(const struct scene *scene)
{
	uint32_t failed = scene->callsites->failed;
	struct pool pool;

	if (pool_is_first_refused(scene))
		return (double)scene->end.refused->size /
		       (double)(scene_live(scene) + scene->end.refused->size);
	if (failed == CALLSITE_NONE || purpose_of(scene, failed) != PURPOSE_ROOM ||
	    !pool_at(scene, failed, &pool) || !pool.asked)
		return 0;
	return (double)pool.bytes / (double)scene_live(scene);
}

/* True if, by names, another model was being put in place beside work when its next weight was
 * refused; or what was made before any work was made once more. */
static bool loads_late(const struct scene *scene, struct finding *out)
{
	const struct callsites *callsites = scene->callsites;
	struct finding f = {.blame = CALLSITE_NONE, .strength = UNKNOWN_STRENGTH, .late = true};
	uint64_t most = 0;
	enum purpose purpose;
	struct late_work work = late_work_of(scene);
	struct late late;

	if (!scene->end.refused || callsites->failed == CALLSITE_NONE ||
	    !late_at(scene, &work, callsites->failed, &late))
		return false;
	purpose = purpose_of(scene, callsites->failed);
	if (purpose == PURPOSE_ROOM || (purpose == PURPOSE_UNTOLD && !late.again))
		return false;
	f.start_ns = late.since_ns;
	for (uint32_t i = 0; i < callsites->count; i++) {
		if (!late_at(scene, &work, i, &late))
			continue;
		finding_claim_without(&f, callsites, i, late.bytes);
		finding_blame_larger(&f, i, late.bytes, &most);
		f.start_ns = num_least(f.start_ns, late.since_ns);
	}
	f.request_bytes = scene->end.refused->size;
	finding_evidence(&f, FACT_LOADED, (double)f.bytes);
	if (scene->limit.bytes)
		finding_evidence(&f, FACT_DEVICE_MEMORY, (double)scene->limit.bytes);
	*out = f;
	return true;
}

int detect_oversized_model(const struct scene *scene, struct finding *out)
{
	const struct callsites *callsites = scene->callsites;
	struct finding f = {.blame = callsites->failed};
	uint64_t known_blocks = parameters(scene);
	double churn = scene_churn(scene), known = scene_share_of(scene, ROLE_WEIGHTS_LOAD);
	double back = scene_given_back(scene);
	bool loading;
	uint64_t most = 0, varied = 0, worked = 0, live = scene_live(scene);

	if (!scene->end.failed)
		return DETECT_SILENT;
	if (scene->space && purpose_is_start(scene) &&
	    purpose_of(scene, callsites->failed) == PURPOSE_WEIGHTS &&
	    first_weight(scene, live, out))
		return 0;
	if (!live)
		return DETECT_SILENT;
	if (!scene->space)
		return judge_host(scene, out);
	if (loads_late(scene, out))
		return 0;
	loading = is_loading(scene);
	if (!loading && (churn >= WORKED_SHARE || back >= WORKED_BYTES))
		return DETECT_SILENT;
	for (uint32_t i = 0; i < callsites->count; i++) {
		const struct callsite *p = &callsites->list[i];
		struct pool pool;

		if (p->facts.live_bytes < live / 1000)
			continue;
		/* That is work, not a weight. */
		if (callsite_is_working_set(p, callsites->moment_ns) || graphs_have(scene, i) ||
		    is_in_flight(scene, i) || (loading && !scene_is_weights(scene, i)) ||
		    (known_blocks && scene->roles[i] != ROLE_WEIGHTS_LOAD &&
			p->facts.live_count > OF_A_PARAMETER * known_blocks)) {
			worked += p->facts.live_bytes;
			continue;
		}
		finding_claim(&f, i, RULE_KEEP_BYTES, 0, p->facts.live_bytes);
		/* A model has parameters of several shapes; a pool's blocks are all alike. */
		if (converted_weights(scene, i))
			varied += p->facts.live_bytes;
		else if (is_varied(scene, p) || purpose_of(scene, i) == PURPOSE_WEIGHTS)
			varied += p->facts.live_bytes - (pool_at(scene, i, &pool) ? pool.bytes : 0);
		finding_blame_larger(&f, i, p->facts.live_bytes, &most);
	}
	/* A first request that is larger than all weights is for something else. */
	if (scene->end.refused && !scene_asks_for(scene, ROLE_KV_CACHE) &&
	    !scene_asks_beside_weights(scene) && !purpose_is_start(scene))
		f.request_bytes = scene->end.refused->size;
	f.strength = loading ? 1
			     : fmin(1, (WORKED_SHARE - churn) / (WORKED_SHARE - LOADED_SHARE)) *
				   fmin(1, (WORKED_BYTES - back) / (WORKED_BYTES - LOADED_BYTES));
	f.strength *= fmax(known, fmin(UNKNOWN_STRENGTH, 0.25 + (double)varied / (double)live));
	f.strength *= 1 - (double)worked / (double)live;
	f.strength *= 1 - room_asked(scene);
	/* Memory that others hold is as much of a reason. */
	if (scene->others.known)
		f.strength *= (double)live / (double)(live + scene->others.bytes);
	/* So are holes that in one piece would have held what was refused. */
	if (scene->slack.known && scene->end.refused &&
	    scene->end.refused->size <= scene->slack.bytes + scene->slack.below)
		f.strength *= (double)live / (double)(live + scene->slack.bytes);
	if (!loading && has_served(scene))
		f.strength *= SERVED_STRENGTH;
	f.start_ns = scene->model->run.first_ns ? scene->model->run.first_ns : 1;
	f.late = loading;
	finding_evidence(&f, FACT_LOADED, (double)(live - worked));
	finding_evidence(&f, FACT_BLOCKS_RETURNED, churn);
	finding_evidence(&f, FACT_BYTES_RETURNED, back);
	if (scene->limit.bytes)
		finding_evidence(&f, FACT_DEVICE_MEMORY, (double)scene->limit.bytes);
	*out = f;
	return 0;
}
