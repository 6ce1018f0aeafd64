/*
 * oversized_intermediate.c - one huge object: a refused request far larger than any before at its
 * call site; few blocks that are large against everything else; a pile of blocks that one request
 * made after a long steady state; or all that one open call made.
 */
#include <math.h>

#include "detect/late.h"
#include "detect/pool.h"
#include "detect/purpose.h"
#include "util/num.h"
#include "util/tuned.h"

TUNED(unsigned, OUT_OF_SERIES, 4u,
    "blocks of one line differ by a doubling or two; four times as large is another request");
TUNED(unsigned, OUTLIVED_TIMES, 32u,
    "a machine that stalls once makes a block ten times as old as usual, not 32 times");
TUNED(unsigned, SET_UP_MIN, 8u, "fewer large blocks may be one object and its copies");
TUNED(double, FOLLOWS_INPUT, 0.4,
    "a block as large as its input makes it is the prompt, not something on the way");
TUNED(unsigned, LARGE_PART, 20u,
    "twenty blocks of a twentieth are a working set, fewer are large against everything else");
TUNED(uint64_t, RELEASED_FEW, 2u, "a start has a buffer or two of its own");
TUNED(double, FIRST, 0.35,
    "the first thing that a program makes is a model or a pool rather than one request's");
TUNED(double, FIRST_TIMES, 8, "a sixteenth that was released is of requests that ended");
TUNED(double, SET_UP, 0.5,
    "several alike taken in one go are for all requests; a coin toss against one request's own");
TUNED(double, SAME_PACE, 2.0,
    "one request makes its blocks as fast as it can, far more than twice the usual pace");
TUNED(unsigned, SERIES_MIN, 4u, "an object, its copy, and what both are made of are three");
TUNED(double, SERIES, 0.6, "one request in a loop makes several, too");
TUNED(unsigned, ALIKE_PART, 16u, "a copy differs by a heading or a terminator");
TUNED(uint64_t, STANDS_PART, 2u, "half of all blocks are more than one request's, if it is late");
TUNED(double, NOT_KNOWN_BEFORE, 0.4,
    "older events were replaced: whether it grew to that size is not known");

/* Return how surely the program had begun to work: on the host its own code, without imports, had
 * released blocks, or earlier calls like this one had ended; on a device anything was released. */
static double begun(const struct scene *scene, const struct callsite *blamed)
{
	uint64_t made = 0, released = 0;

	if (scene->space)
		return fmin(1, FIRST + scene_churn(scene));
	if (blamed->call.open == OPEN_CALL_YES)
		return 1;
	for (uint32_t i = 0; i < scene->callsites->count; i++) {
		const struct callsite *p = &scene->callsites->list[i];

		if (p->owner != OWNER_USER || callsite_is_import(p))
			continue;
		made += p->facts.total_count - (p == blamed ? p->facts.live_count : 0);
		released += p->facts.freed_count;
	}
	released = num_less(released, RELEASED_FEW);
	return fmin(1, FIRST + FIRST_TIMES * (double)released / (double)(made ? made : 1));
}

/* True if the refused request is the largest of its line, and would not fit if nothing else lived:
 * whatever the series is like, it is the matter. */
static bool exceeds_limit(const struct scene *scene, const struct callsite *p)
{
	const struct scene_limit *l = &scene->limit;

	return l->bytes && l->usage && scene->end.refused->size > p->facts.largest &&
	       scene->end.refused->size >
		   num_less(l->bytes, l->usage) + scene_live(scene) + scene->slack.bytes;
}

static double request(const struct scene *scene, struct finding *f, uint64_t whole)
{
	const struct callsite *p;
	double strength;

	if (!scene->end.refused || scene->callsites->failed == CALLSITE_NONE)
		return 0;
	p = &scene->callsites->list[scene->callsites->failed];
	/* Memory for all tokens is no intermediate; nor is a weight, before any work. */
	if (scene_asks_for(scene, ROLE_KV_CACHE) || scene_asks_for_thread(scene) ||
	    (!scene->space && scene_asks_for(scene, ROLE_WEIGHTS_LOAD) &&
		!scene_worked_before(
		    scene, scene->callsites->moment_ns, scene->end.refused->size, 0)))
		return 0;
	/* The unknown stack has no series to stand out from. */
	if ((p->size.grows || p->relations.index_of != CALLSITE_NONE) ||
	    (p->facts.largest && scene->end.refused->size / OUT_OF_SERIES < p->facts.largest &&
		!exceeds_limit(scene, p)))
		return 0;
	strength = dominance((double)scene->end.refused->size, (double)whole);
	if (scene_amplifies(scene, scene->callsites->failed))
		strength *= FOLLOWS_INPUT;
	if (!scene_asks_beside_weights(scene) && purpose_is_start(scene) &&
	    purpose_of(scene, scene->callsites->failed) != PURPOSE_UNTOLD)
		strength *= SET_UP;
	/* The request was not too large for the free memory, only for each piece of it. */
	if (scene->slack.known &&
	    scene->end.refused->size <= scene->slack.bytes + scene->slack.below)
		strength *= 0.5;
	if (strength <= 0)
		return 0;
	f->request_bytes = scene->end.refused->size;
	f->blame = scene->callsites->failed;
	finding_evidence(f, FACT_ASKED, (double)scene->end.refused->size);
	finding_evidence(f, FACT_LIVE_THEN, (double)whole);
	finding_evidence(f, FACT_ASKED_BEFORE, (double)p->facts.largest);
	return strength;
}

/* True if equally large blocks have come and gone there many times. */
static bool is_usual(const struct callsite *p)
{
	return p->facts.freed_count >= 8 && p->facts.freed_count >= p->facts.live_count &&
	       (p->facts.total_bytes - p->facts.live_bytes) / p->facts.freed_count >=
		   p->facts.live_bytes / p->facts.live_count / OUT_OF_SERIES;
}

/* Return the largest request's share of what requests in flight hold at the claimed call sites:
 * what several requests made is not one request's, unless one alone would not have fit, either. */
static double alone(const struct scene *scene, const struct finding *f)
{
	uint64_t sum = 0, largest = 0, beside = 0;

	for (uint32_t i = 0; scene->held && i < f->claim_count; i++) {
		sum += scene->held->callsites[f->claims[i].callsite].bytes;
		largest += scene->held->callsites[f->claims[i].callsite].largest;
	}
	for (uint32_t i = 0; f->request_bytes && scene->held && i < scene->held->count; i++)
		beside += scene_asked_beside(scene, i) ? scene->held->list[i].all : 0;
	if (beside) {
		sum += f->request_bytes;
		largest = f->request_bytes;
	}
	if (scene->limit.bytes && largest > scene->limit.bytes)
		return 1;
	return sum ? (double)largest / (double)sum : 1;
}

/* Return how lately the newest block came, as a share of the run. On the host also as a share of
 * its work, whichever is later: a long pass does not make the block older. On a device, if the call
 * that made the blocks ended, also by the blocks that came since, whichever is older: requests were
 * served beside it. */
static double youth(const struct scene *scene, const struct callsite *p)
{
	const struct callsites *callsites = scene->callsites;
	uint64_t run = num_less(callsites->moment_ns, scene->model->run.first_ns);
	double age =
	    run ? (double)num_less(callsites->moment_ns, p->facts.last_ns) / (double)run : 0;
	double worked = p->facts.step_count && callsites->moment_serial
			    ? (double)num_less(callsites->moment_serial,
				  p->facts.steps[p->facts.step_count - 1].serial) /
				  (double)callsites->moment_serial
			    : 0;

	if (!scene->space)
		return 1 - fmin(age, worked);
	return 1 - (p->call.open == OPEN_CALL_NO ? fmax(age, worked) : age);
}

/* True if names say what the line's blocks are for, and it began before any work, which has not
 * begun since; no earlier call like this one had ended, as requests do. */
static bool is_put_in_place(const struct scene *scene, uint32_t callsite)
{
	const struct callsite *p = &scene->callsites->list[callsite];

	return !scene->space && !p->call.ended_before && !p->call.repeats &&
	       purpose_of(scene, callsite) != PURPOSE_UNTOLD &&
	       scene_is_quiet_since(scene, p->facts.first_ns) &&
	       !scene_worked_before(scene, p->facts.first_ns, p->facts.live_bytes, 0);
}

static bool is_set_up(const struct scene *scene, uint32_t callsite)
{
	const struct callsite *p = &scene->callsites->list[callsite];
	struct pool pool;

	if (is_put_in_place(scene, callsite))
		return true;
	if (!pool_at(scene, callsite, &pool))
		return false;
	/* One block alone may be anything, unless its name says what it is for. */
	if (pool.blocks < 2 && purpose_of(scene, callsite) != PURPOSE_ROOM)
		return false;
	return scene->space
		   ? p->call.open == OPEN_CALL_NO && callsite != scene->callsites->failed
		   : !scene_worked_before(scene, p->facts.first_ns, p->facts.live_bytes, 0);
}

/* True if several requests may have made the blocks: as many come from one line, and no call is
 * known to have made them all. */
static bool is_series(const struct callsite *p)
{
	return p->facts.live_count >= SERIES_MIN && p->call.open != OPEN_CALL_YES;
}

static uint64_t last_serial(const struct callsite *p)
{
	return p->facts.step_count ? p->facts.steps[p->facts.step_count - 1].serial : 0;
}

/* Return the serial at which half of the work was done. Imports until `last` are no work. */
static uint64_t half_of_work(const struct scene *scene, uint64_t last)
{
	uint64_t now = scene->callsites->moment_serial, from = now, imported = 0;

	for (uint32_t i = 0; i < scene->callsites->count; i++) {
		const struct callsite *o = &scene->callsites->list[i];

		if (callsite_is_import(o) && last_serial(o) < last)
			imported = num_most(imported, last_serial(o));
		else if (o->owner == OWNER_USER && o->facts.step_count && !callsite_is_import(o))
			from = num_least(from, o->facts.steps[0].serial);
	}
	from = num_most(from, imported);
	return from + num_less(now, from) / STANDS_PART;
}

/* True if most of the work came after its newest block: it stands there, whatever is made later. */
static bool stands(const struct scene *scene, const struct callsite *p)
{
	return !scene->space && p->facts.step_count &&
	       last_serial(p) < half_of_work(scene, last_serial(p));
}

/* Return when the oldest block that lives was made there. */
static uint64_t born(const struct callsite *p)
{
	for (uint32_t k = 0; k < p->facts.step_count; k++)
		if (p->facts.steps[k].freed_bytes < p->facts.steps[k].bytes)
			return p->facts.steps[k].time_ns;
	return p->facts.last_ns;
}

/* Return the time at which half of the work was done, if requests were served before the
 * finding's blocks: what lived at that time stands and fits, so it is no growth to explain. Else 0.
 */
static uint64_t standing_since(const struct scene *scene, const struct finding *f)
{
	uint64_t begin = f->request_bytes ? scene->callsites->moment_ns
					  : scene->callsites->list[f->blame].facts.first_ns;
	uint64_t half, since = 0;
	double stood = 0;

	if (scene->space || scene->work ||
	    !scene_worked_before(scene, begin, f->bytes + f->request_bytes, 0))
		return 0;
	half = half_of_work(scene, scene->callsites->moment_serial);
	for (uint32_t i = 0; i < scene->callsites->count; i++) {
		const struct callsite_facts *o = &scene->callsites->list[i].facts;

		for (uint32_t k = 0; k < o->step_count && o->steps[k].serial <= half; k++)
			since = num_most(since, o->steps[k].time_ns);
	}
	for (uint32_t i = 0; i < f->claim_count; i++)
		stood +=
		    survivors_bytes_until(&scene->callsites->list[f->claims[i].callsite], since);
	if (f->bytes && stood >= (double)f->bytes / STANDS_PART)
		return 0;
	/* Its own growth begins with the first block of its line. */
	return num_most(since, scene->callsites->list[f->blame].facts.first_ns);
}

static bool has_large(const struct callsite *p, uint64_t whole)
{
	return p->facts.live_count &&
	       p->facts.live_bytes / p->facts.live_count >= whole / LARGE_PART;
}

/* True if it stands since before any work: it is of a start, and of no request. */
static bool is_standing(const struct scene *scene, const struct callsite *p)
{
	return stands(scene, p) && !scene_worked_before(scene, born(p), p->facts.live_bytes, 0);
}

/* True if a large block came lately: then those that stand are not the matter. */
static bool has_newer(const struct scene *scene, uint64_t whole)
{
	for (uint32_t i = 0; i < scene->callsites->count; i++) {
		const struct callsite *p = &scene->callsites->list[i];

		if (has_large(p, whole) && p->owner == OWNER_USER && !stands(scene, p) &&
		    scene_worked_before(scene, p->facts.first_ns, p->facts.live_bytes, 0))
			return true;
	}
	return false;
}

/* Few blocks, each large against everything else, that were not there all along. */
static double blocks(const struct scene *scene, struct finding *f, uint64_t whole)
{
	const struct callsites *callsites = scene->callsites;
	uint64_t bytes = 0, count = 0;
	double young = 0, most = 0, here;
	bool next = false, newer = has_newer(scene, whole);

	for (uint32_t i = 0; i < callsites->count; i++) {
		const struct callsite *p = &callsites->list[i];

		if (!has_large(p, whole) || p->size.grows ||
		    p->relations.index_of != CALLSITE_NONE ||
		    (p->survivors.stays && p->survivors.count >= 8 &&
			callsite_largest_live(p) <= p->facts.live_bytes / 2) ||
		    is_usual(p) || (newer && is_standing(scene, p)))
			continue;
		finding_claim(f, i, RULE_STREAM, p->facts.live_bytes / p->facts.live_count / 64,
		    p->facts.live_bytes);
		here = youth(scene, p) * (is_set_up(scene, i) ? SET_UP : 1) *
		       (is_series(p) ? SERIES : 1) * (double)p->facts.live_bytes;
		young += here;
		bytes += p->facts.live_bytes;
		count += p->facts.live_count;
		next |= scene->end.refused && i == callsites->failed;
		/* Of two as large the newer one is the matter: the other stood, and fitted. */
		if (here > most || f->blame == CALLSITE_NONE) {
			most = here;
			if (f->blame == CALLSITE_NONE || !f->request_bytes)
				f->blame = i;
		}
	}
	if (!bytes)
		return 0;
	/* A part of the request was granted. */
	if (next && !f->request_bytes)
		f->request_bytes = scene->end.refused->size;
	finding_evidence(f, FACT_LARGE_BLOCKS, (double)count);
	finding_evidence(f, FACT_BLOCK_BYTES, (double)bytes);
	finding_evidence(f, FACT_LARGE_SHARE, (double)bytes / (double)whole);
	if (scene_amplifies(scene, f->blame))
		young *= FOLLOWS_INPUT;
	/* Old blocks are the program's standing footprint, not an intermediate. */
	return fmin(
		   1, dominance((double)bytes, (double)(whole - bytes)) * (young / (double)bytes)) *
	       alone(scene, f);
}

/* Find a pile: the call site used to release its blocks soon, and then made blocks that outlived
 * all earlier ones, because the last request had another size. Returns the bytes of the pile, 0:
 * none, and its begin. */
static uint64_t outlived(const struct callsite *p, uint64_t moment_ns, uint64_t *since_ns)
{
	uint64_t before = 0, released = 0, alive = 0, rest = 0, since = 0, age;
	uint32_t from = p->facts.step_count;

	while (from > 0) {
		const struct step *s = &p->facts.steps[from - 1];

		/* A step released in part crosses the pile's begin, or parts come by other ways. */
		if (s->freed_bytes >= s->bytes - s->bytes / 16 && from < p->facts.step_count)
			break;
		alive += s->bytes - s->freed_bytes;
		since = s->time_ns;
		from--;
	}
	for (uint32_t i = 0; i < from; i++) {
		before += p->facts.steps[i].count;
		released += p->facts.steps[i].freed_count;
		rest += p->facts.steps[i].bytes - p->facts.steps[i].freed_bytes;
	}
	age = moment_ns - since;
	if (before < 8 || before < p->survivors.count / 4 || released < before - before / 16 ||
	    rest > alive / 16)
		return 0;
	/* The pile has not lasted long, but there was none as large: see unlike_piles(). */
	if (age < 2 * p->facts.longest_life_ns &&
	    age < OUTLIVED_TIMES * (p->facts.life_ns / p->facts.freed_count) &&
	    (!p->buildup.largest || alive <= p->buildup.largest))
		return 0;
	*since_ns = since;
	return alive;
}

static double unpaced(const struct callsite *p, uint64_t since_ns, uint64_t moment_ns)
{
	double before = 0, during = 0, freed = 0;

	for (uint32_t i = 0; i < p->facts.step_count; i++) {
		const struct step *s = &p->facts.steps[i];

		*(s->time_ns < since_ns ? &before : &during) += (double)s->count;
		freed += s->time_ns < since_ns ? 0 : (double)s->freed_count;
	}
	if (since_ns <= p->facts.first_ns || moment_ns <= since_ns || during <= 0 ||
	    during / (double)(moment_ns - since_ns) >
		SAME_PACE * before / (double)(since_ns - p->facts.first_ns))
		return 1;
	return 1 - freed / during;
}

/* A pile hardly larger than the largest released one is its next; from twice as large it stands
 * out. */
static double unlike_piles(const struct callsite *p, uint64_t made)
{
	if (!p->buildup.largest)
		return 1;
	return fmax(0, fmin(1, log2((double)made / (double)p->buildup.largest)));
}

static double last_request(const struct scene *scene, struct finding *f)
{
	const struct callsites *callsites = scene->callsites;
	uint64_t bytes = 0, most = 0, whole = scene_live(scene);
	uint64_t since = 0;
	double unlike = 1, apart = 1;

	for (uint32_t i = 0; i < callsites->count; i++) {
		const struct callsite *p = &callsites->list[i];
		uint64_t made = p->size.grows || scene_amplifies(scene, i)
				    ? 0
				    : outlived(p, callsites->moment_ns, &since);

		if (made < whole / 100)
			continue;
		finding_claim_without(f, callsites, i, made);
		bytes += made;
		if (made > most) {
			most = made;
			f->blame = i;
			unlike = unlike_piles(p, made);
			apart = unpaced(p, since, callsites->moment_ns);
			finding_evidence(f, FACT_LAST_RELEASED, (double)p->facts.freed_count);
			finding_evidence(f, FACT_LAST_LIVED, (double)p->facts.longest_life_ns);
			finding_evidence(f, FACT_LAST_KEPT, (double)made);
		}
	}
	return bytes ? 0.9 * unlike * apart * alone(scene, f) : 0;
}

/* Many blocks, of one stretch after a long steady state. */
static double pile(const struct scene *scene, struct finding *f)
{
	const struct callsites *callsites = scene->callsites;
	struct late_rise burst;
	uint64_t bytes = 0, most = 0, large = 0, count = 0;

	/* A device takes seconds before any work starts. */
	if (!late_rise_find(&scene->model->timeline, scene->model->run.first_ns,
		callsites->moment_ns, &burst) ||
	    (scene->space && !burst.worked))
		return 0;
	for (uint32_t i = 0; i < callsites->count; i++) {
		const struct callsite *p = &callsites->list[i];
		double before = survivors_bytes_until(p, burst.start_ns);
		uint64_t made =
		    p->survivors.bytes > before ? p->survivors.bytes - (uint64_t)before : 0;

		if ((p->size.grows && p->size.live_bytes > made / 4) || scene_amplifies(scene, i) ||
		    made < burst.peak_trend_bytes / 100 || is_set_up(scene, i) ||
		    scene_is_weights(scene, i))
			continue;
		finding_claim(f, i, RULE_KEEP_BYTES, (uint64_t)before, made);
		bytes += made;
		large += scene_few_large(scene, p) ? made : 0;
		count += scene_few_large(scene, p) ? p->facts.live_count : 0;
		finding_blame_larger(f, i, made, &most);
	}
	if (!bytes)
		return 0;
	/* Before the first work there is no request to blame: large blocks are put in place, and
	 * what calls that have returned left behind is the work itself, which began late. */
	if (!scene->space &&
	    ((large > bytes / 2 && count >= SET_UP_MIN) ||
		callsites->list[f->blame].call.open == OPEN_CALL_NO) &&
	    !scene_worked_before(scene, burst.start_ns, bytes, 0))
		return 0;
	finding_evidence(f, FACT_BURST_RISE, (double)burst.peak_trend_bytes);
	finding_evidence(f, FACT_BURST_STEADY, (double)burst.steady_ns);
	return 0.9 * alone(scene, f) * fmin(1, (double)bytes / (double)burst.peak_trend_bytes);
}

/* True if the refused request was made in the open call that made the call site's blocks. */
static bool asks_in_call(const struct scene *scene, const struct callsite *p)
{
	const struct feed *feed = &scene->model->feed;
	uint32_t stack = scene->end.refused ? scene->end.refused->stack : 0;
	const struct symbol *symbols;
	size_t count = stack ? feed->symbols(feed->self, stack, &symbols) : 0;

	if (p->call.open != OPEN_CALL_YES || !p->call.function)
		return false;
	for (size_t i = 0; i < count; i++)
		if (symbol_same_function(&symbols[i], p->call.function))
			return true;
	return false;
}

/* Any number of blocks, all made by one open call. */
static double one_call(const struct scene *scene, struct finding *f)
{
	const struct callsites *callsites = scene->callsites;
	struct late_work work = late_work_of(scene);
	uint64_t most = 0, before = 0, sure = 0, all = 0, set_up = 0;

	for (uint32_t i = 0; i < callsites->count; i++) {
		const struct callsite *p = &callsites->list[i];
		uint64_t made = p->survivors.stays ? p->survivors.bytes : p->facts.live_bytes;
		struct late late;
		bool is_late = late_at(scene, &work, i, &late);

		if ((p->call.open == OPEN_CALL_NO && !is_late) || scene_is_weights(scene, i))
			continue;
		if (is_late)
			made = late.bytes;
		finding_claim_without(f, callsites, i, made);
		all += made;
		sure += p->call.open == OPEN_CALL_YES || is_late ? made : 0;
		set_up += is_set_up(scene, i) || (is_late && purpose_of(scene, i) != PURPOSE_UNTOLD)
			      ? made
			      : 0;
		if (is_late && made > most)
			f->start_ns = late.since_ns;
		if (scene->end.refused && (i == callsites->failed || asks_in_call(scene, p)))
			f->request_bytes = scene->end.refused->size;
		if (made > most) {
			most = made;
			f->blame = i;
			before = p->call.ended_before;
		}
	}
	if (!f->bytes)
		return 0;
	finding_evidence(f, FACT_CALL_BYTES, (double)f->bytes);
	if (before)
		finding_evidence(f, FACT_CALL_BEFORE, (double)before);
	/* Layer after layer, before any work: a model is put in place. */
	if (sure && !scene->space && callsites->list[f->blame].facts.live_count >= SET_UP_MIN &&
	    scene_is_read_in(scene, f->blame) &&
	    !scene_worked_before(scene, callsites->list[f->blame].facts.first_ns, f->bytes, 0))
		sure = 0;
	/* A few blocks that are surely one call's say nothing of the rest. */
	return (sure > all / 2 ? 0.95 : 0.35) * (set_up > all / 2 ? SET_UP : 1);
}

/* Return when the call site first made a block of about that size, unlike earlier ones; 0:
 * never. */
static uint64_t made_first(const struct callsite *p, uint64_t size)
{
	uint64_t least = size - size / ALIKE_PART, most = size + size / ALIKE_PART;

	for (uint32_t k = 0;
	     p->facts.largest >= least && p->facts.largest <= most && k < p->facts.step_count;
	     k++) {
		if (p->facts.steps[k].max >= least)
			return p->facts.steps[k].last_ns;
		if (p->facts.steps[k].max > size / OUT_OF_SERIES)
			return 0;
	}
	return 0;
}

/* Return the call site that made a single block larger than the refused request, and lately; or
 * CALLSITE_NONE. Which of them is refused depends on the limit alone. */
static uint32_t larger_than_asked(const struct scene *scene, const struct finding *f)
{
	uint64_t most = f->request_bytes;
	uint32_t found = CALLSITE_NONE;

	for (uint32_t i = 0; i < f->claim_count && f->blame == scene->callsites->failed; i++) {
		const struct callsite *p = &scene->callsites->list[f->claims[i].callsite];
		uint64_t largest = callsite_largest_live(p);

		if (p->owner != OWNER_USER || callsite_is_import(p) || stands(scene, p) ||
		    largest <= most)
			continue;
		most = largest;
		found = f->claims[i].callsite;
	}
	return found;
}

/* Blame the first of several call sites that make an object equally large, as it is passed on and
 * written in other forms: the others need no change. What stands since long before is no form of
 * it: the copy is a later request's. */
static void blame_first(const struct scene *scene, struct finding *f)
{
	const struct callsites *callsites = scene->callsites;
	const struct callsite *blamed = &callsites->list[f->blame];
	bool asked = f->request_bytes && f->blame == callsites->failed;
	uint64_t size = asked ? f->request_bytes : blamed->facts.largest;
	uint64_t first = asked ? callsites->moment_ns : made_first(blamed, size);
	uint32_t larger;

	if (size < scene_live(scene) / LARGE_PART)
		return;
	larger = asked ? larger_than_asked(scene, f) : CALLSITE_NONE;
	if (larger != CALLSITE_NONE) {
		f->blame = larger;
		size = callsites->list[f->blame].facts.largest;
		first = made_first(&callsites->list[f->blame], size);
	}
	for (uint32_t i = 0; i < callsites->count; i++) {
		const struct callsite *p = &callsites->list[i];
		uint64_t made =
		    p->owner == OWNER_USER && !callsite_is_import(p) ? made_first(p, size) : 0;

		if (!made || made >= first || stands(scene, p))
			continue;
		first = made;
		f->blame = i;
	}
	f->copied = &callsites->list[f->blame] != blamed;
	if (f->copied)
		finding_evidence(f, FACT_COPY_BYTES, (double)size);
}

/* Prefer few large blocks, unless another shape is clearer, or accounts for more live bytes. */
static bool is_better(const struct scene *scene, const struct finding *g, const struct finding *f)
{
	uint64_t whole = scene_live(scene);

	if (f->strength < 0.5)
		return g->strength > f->strength;
	return f->bytes + f->request_bytes <= (whole + f->request_bytes) / 2 &&
	       g->strength * (double)(g->bytes + g->request_bytes) >
		   f->strength * (double)(f->bytes + f->request_bytes);
}

static bool was_always_large(const struct scene *scene, const struct callsite *p)
{
	return scene->callsites->replaced_until_ns && p->facts.freed_count &&
	       p->size.first >= p->size.last / 2;
}

int detect_oversized_intermediate(const struct scene *scene, struct finding *out)
{
	uint64_t whole = scene_live(scene);
	const struct finding none = {.blame = CALLSITE_NONE};
	struct finding f = none, g;
	double asked = request(scene, &f, whole), large;

	large = blocks(scene, &f, whole ? whole : 1);
	f.strength = fmax(asked, large);
	g = none;
	g.strength = pile(scene, &g);
	if (g.strength <= 0)
		g.strength = last_request(scene, &g);
	if (is_better(scene, &g, &f))
		f = g;
	g = none;
	g.strength = one_call(scene, &g);
	if (is_better(scene, &g, &f))
		f = g;
	f.strength *= scene_beside_workers(scene, f.bytes + f.request_bytes) *
		      scene_beside_before(scene, f.bytes + f.request_bytes);
	if (f.blame == CALLSITE_NONE || f.strength <= 0)
		return DETECT_SILENT;
	f.strength *= begun(scene, &scene->callsites->list[f.blame]);
	if (was_always_large(scene, &scene->callsites->list[f.blame]))
		f.strength *= NOT_KNOWN_BEFORE;
	f.start_ns = standing_since(scene, &f);
	blame_first(scene, &f);
	*out = f;
	return 0;
}
