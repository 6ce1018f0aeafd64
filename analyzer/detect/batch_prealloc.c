/*
 * batch_prealloc.c - memory that is allocated up front for the largest batch or the largest
 * context: a few large blocks of one size, allocated in one go and kept ever since.
 */
#include "detect/graphs.h"
#include "detect/pool.h"
#include "detect/purpose.h"
#include "util/num.h"
#include "util/tuned.h"

TUNED(double, SINGLE_STRENGTH, 0.7,
    "one block alone may be anything that is large; two of one size are a pool");
TUNED(
    double, SINGLE_NAMED, 0.9, "its name says that it is room, which is less than a second block");
TUNED(double, UNNAMED, 0.6,
    "what is taken whole before any work is room for it, more often than one request's or a model");
TUNED(double, NAMED_WEIGHTS, 0.7,
    "names are a weak sign: a program that calls its pool layers is rare, and not unheard of");
TUNED(unsigned, MAKING_TIMES, 2u,
    "when it was killed half way through a pool, on average, twice that was to come");
TUNED(unsigned, STAIRS_MIN, 8u, "fewer may get larger by chance");
TUNED(double, STAIRS, 0.8, "they may be one request's, whose steps get larger");
TUNED(double, STAIRS_SHARE, 0.25, "to try a batch takes far less than is kept for it");

static bool is_cache_refused(const struct scene *scene)
{
	return scene_asks_for(scene, ROLE_KV_CACHE) && pool_is_unlike(scene);
}

/* True if the pool belongs with a claimed one: keys and values of all layers are of one pool, in a
 * block and at a line each, and their blocks are equally large. */
static bool is_twin(const struct finding *f, const uint64_t *sizes, uint64_t size)
{
	for (uint32_t i = 0; i < f->claim_count; i++)
		if (sizes[i] == size)
			return true;
	return false;
}

/* True if no work was done, neither before nor since: then its block is what memory ended with. On
 * a device it may have been done since, if the name says that the block is room. */
static bool is_first(const struct scene *scene, uint32_t callsite)
{
	const struct callsite *p = &scene->callsites->list[callsite];

	if (scene->space)
		return scene_is_quiet_since(scene, 0) ||
		       (purpose_of(scene, callsite) == PURPOSE_ROOM &&
			   !scene_worked_before(scene, p->facts.first_ns, p->facts.largest, 0));
	return scene_is_quiet_since(scene, p->facts.first_ns) &&
	       !scene_worked_before(scene, p->facts.first_ns, p->facts.largest, 0);
}

/* True if the line made a block for each size of a batch, one larger than the other, before any
 * work, and keeps all. */
static bool stairs_at(const struct scene *scene, uint32_t callsite, struct pool *out)
{
	const struct callsite *p = &scene->callsites->list[callsite];

	*out = (struct pool){.bytes = p->facts.live_bytes,
	    .blocks = p->facts.live_count,
	    .largest = p->facts.largest,
	    .asked = scene->end.refused && callsite == scene->callsites->failed,
	    .sure = STAIRS};
	return scene_keeps_series(p) && p->facts.live_count >= STAIRS_MIN &&
	       p->facts.live_count <= POOL_BLOCKS &&
	       scene_worked_since(scene, p->facts.first_ns) < STAIRS_SHARE &&
	       (scene->space ||
		   !scene_worked_before(scene, p->facts.first_ns, p->facts.live_bytes, 0));
}

/* True if it is one block of a line that made it after earlier work: nothing is set up then, so it
 * is the request's that came next, whatever it is called. */
static bool is_late(const struct scene *scene, uint32_t callsite, const struct pool *pool)
{
	const struct callsite *p = &scene->callsites->list[callsite];

	return pool->blocks == 1 && !scene->space &&
	       scene_worked_before(scene, p->facts.first_ns, pool->bytes, 0);
}

/* True if the process was killed while the line's blocks were being made: nothing of its size came
 * later. What other lines had put in place before had fitted. */
static bool is_in_the_making(const struct scene *scene, const struct callsite *p)
{
	const struct callsites *callsites = scene->callsites;

	if (scene->end.refused)
		return false;
	for (uint32_t i = 0; i < callsites->count; i++)
		if (callsites->list[i].facts.largest >= p->facts.largest / 2 &&
		    callsites->list[i].facts.last_ns > p->facts.last_ns)
			return false;
	return true;
}

int detect_batch_prealloc(const struct scene *scene, struct finding *out)
{
	const struct callsites *callsites = scene->callsites;
	uint64_t whole = scene_live(scene), most = 0, blocks = 0, block = 0, bytes = 0;
	struct finding f = {.blame = CALLSITE_NONE};

	uint64_t sizes[CLAIMS_MAX]; /* by claim */
	double sure = 1; /* of the largest claim */
	bool known = false, alike = false;

	if (!scene->end.failed || (!whole && !scene->end.refused))
		return DETECT_SILENT;
	if (graphs_claim(scene, graphs_up_front(scene), out))
		return 0;
	for (uint32_t i = 0; i < callsites->count; i++) {
		uint64_t of_use, size;
		struct pool pool;
		bool stairs;

		if ((scene->roles && scene->roles[i] == ROLE_WEIGHTS_LOAD) ||
		    scene_converts(scene, i) != CALLSITE_NONE)
			continue;
		stairs = stairs_at(scene, i, &pool);
		if (!stairs && (!pool_at(scene, i, &pool) || is_late(scene, i, &pool)))
			continue;
		/* How much of the pool is used is not recorded. The first block was, unless the
		 * pool was never finished. */
		of_use = pool.largest;
		if (pool.asked ||
		    (pool.blocks == 1 && (is_twin(&f, sizes, pool.largest) || is_first(scene, i))))
			of_use = 0;
		alike |= pool.blocks + pool.asked > 1 || is_twin(&f, sizes, pool.largest);
		if (f.claim_count < CLAIMS_MAX)
			sizes[f.claim_count] = pool.largest;
		finding_claim_without(&f, callsites, i, pool.bytes - of_use);
		bytes += pool.bytes;
		blocks += pool.blocks;
		if (pool.asked) {
			/* Room is made beside what was put in place before: only what came with it
			 * counts. */
			if (purpose_of(scene, i) == PURPOSE_ROOM)
				f.start_ns = callsites->list[i].facts.first_ns;
			f.request_bytes = scene->end.refused->size;
			bytes += f.request_bytes;
			whole += f.request_bytes;
			blocks++;
		}
		size = pool.bytes + (pool.asked ? f.request_bytes : 0);
		if (is_in_the_making(scene, &callsites->list[i]))
			size *= MAKING_TIMES;
		if (size > most) {
			most = size;
			sure = pool.sure *
			       (purpose_of(scene, i) == PURPOSE_WEIGHTS ? NAMED_WEIGHTS : 1);
			block = pool.largest;
			f.blame = i;
			f.form = stairs ? FORM_STAIRS : FORM_USUAL;
		}
	}
	if (f.blame == CALLSITE_NONE &&
	    (is_cache_refused(scene) || scene_asks_beside_weights(scene))) {
		f.blame = callsites->failed;
		block = bytes = f.request_bytes = scene->end.refused->size;
		whole += bytes;
		blocks = 1;
		known = is_cache_refused(scene);
	} else if (!f.request_bytes &&
		   ((purpose_is_start(scene) &&
			purpose_of(scene, callsites->failed) != PURPOSE_WEIGHTS) ||
		       (f.blame == CALLSITE_NONE && pool_is_first_refused(scene)))) {
		/* Room for all work, in one piece: smaller pools beside it are not the matter. */
		f.blame = callsites->failed;
		block = f.request_bytes = scene->end.refused->size;
		bytes += block;
		whole += block;
		known = true;
		if (purpose_of(scene, callsites->failed) == PURPOSE_UNTOLD)
			sure = UNNAMED;
		else if (!purpose_is_start(scene))
			sure = SINGLE_STRENGTH; /* or a first request, named after a batch */
	}
	if (f.blame == CALLSITE_NONE)
		return DETECT_SILENT;
	if (!alike && !known)
		sure *= purpose_of(scene, f.blame) == PURPOSE_ROOM ? SINGLE_NAMED : SINGLE_STRENGTH;
	f.strength = sure * dominance((double)bytes, (double)(whole - bytes)) *
		     scene_beside_workers(scene, bytes);
	if (bytes > f.request_bytes) {
		finding_evidence(&f, FACT_POOL_BYTES, (double)(bytes - f.request_bytes));
		finding_evidence(
		    &f, FACT_BLOCK_COUNT, (double)(blocks - (f.request_bytes ? 1 : 0)));
	}
	finding_evidence(&f, FACT_POOL_BLOCK, (double)block);
	if (f.request_bytes)
		finding_evidence(
		    &f, known ? FACT_POOL_WHOLE : FACT_POOL_NEXT, (double)f.request_bytes);
	finding_evidence(&f, FACT_LIVE_BESIDE, (double)num_less(whole, bytes));
	*out = f;
	return 0;
}
