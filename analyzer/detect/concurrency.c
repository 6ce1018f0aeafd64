/*
 * concurrency.c - many requests at once: memory ran out for the sum of working sets that overlap.
 * Each is released at its end, and one alone would have fit. Requests in an unbounded queue are in
 * flight, too.
 */
#include <math.h>
#include <string.h>

#include "detect/detect.h"
#include "util/num.h"
#include "util/tuned.h"

TUNED(double, LEFT_SHARE, 0.5,
    "where half of the ended requests left much behind, they retain and are no working sets");
TUNED(double, NONE_ENDED, 0.85,
    "before any request has ended, several alike in flight are all the evidence there is");
TUNED(uint64_t, STUCK_TIMES, 32u,
    "a long request takes some ten times as long as a usual one; one that waits for nobody, for "
    "ever");
TUNED(uint32_t, STREAMS_MIN, 4u, "copies in, work and copies out overlap on three streams");
TUNED(double, ASKED_BESIDE, 0.9,
    "one request was at work and a second one began: it may be larger than the first");
TUNED(double, TOO_LARGE, 0.3, "one request at a time would have failed as well");
TUNED(double, WORKERS_REPEAT, 0.4, "as leak's factors for what contradicts it");
TUNED(double, GROWN_TIMES, 2.0, "of a queue that grows evenly half came in the last half");
TUNED(unsigned, NEARLY_PART, 10u,
    "nine tenths of the sum is nearly all; the rest are requests that have just begun");

/* Claim the arenas that requests in flight hold, as far as no line's own arrays stand for them. */
static void claim_arenas(const struct scene *scene, struct finding *f, double *sum)
{
	const struct requests_held *held = scene->held;
	double share = scene_arenas_in_flight(scene);

	for (uint32_t i = 0; share > 0 && i < scene->callsites->count; i++) {
		const struct callsite *p = &scene->callsites->list[i];
		double used = share * (double)num_less(p->facts.map_bytes, callsite_unused(p));

		if (!scene_has_arenas(p) || scene_held_times(scene, i) > 1)
			continue;
		*sum += used;
		used -= used * (double)held->largest / (double)held->sum;
		finding_claim_without(f, scene->callsites, i, (uint64_t)used);
	}
}

/* Claim all memory beyond what each call site's largest request held. */
static void claim(const struct scene *scene, struct finding *f, double *sum)
{
	const struct callsites *callsites = scene->callsites;
	uint64_t most = 0;

	*sum = 0;
	for (uint32_t i = 0; i < callsites->count; i++) {
		const struct held_callsite *h = &scene->held->callsites[i];
		double times;
		uint64_t others, bytes;

		if (h->alike < 2)
			continue;
		times = scene_held_times(scene, i);
		others = (uint64_t)((double)(h->bytes - h->largest) * times);
		bytes = (uint64_t)((double)h->bytes * times);
		*sum += (double)bytes;
		finding_claim_without(f, callsites, i, others);
		finding_blame_larger(f, i, bytes, &most);
	}
	claim_arenas(scene, f, sum);
}

/* Return the bytes of threads' stacks that one request at a time would not need. A thread that
 * works for one request, and ends with it, needs a stack: of the threads at work, all but one. In a
 * sample not each thread has a block; then all threads count as at work. */
static uint64_t stacks(const struct scene *scene)
{
	const struct requests_held *held = scene->held;
	uint64_t threads = 0;

	if (scene->space || !scene->limit.stacks || !scene->limit.threads || !held->finished)
		return 0;
	for (uint32_t i = 0; i < held->alike; i++)
		threads += held->list[i].lane->task == 0;
	if (threads < 2 || threads < held->alike)
		return 0;
	if (scene->sample_every || threads > scene->limit.threads)
		threads = scene->limit.threads;
	return (uint64_t)((double)scene->limit.stacks * (double)(threads - 1) /
			  (double)scene->limit.threads);
}

static double ended_well(const struct requests_held *held)
{
	if (!held->finished)
		return NONE_ENDED;
	return held->left < LEFT_SHARE ? 1 : NONE_ENDED * (1 - held->left);
}

static void note_ended(struct finding *f, const struct requests_held *held)
{
	if (!held->finished)
		return;
	finding_evidence(f, FACT_ENDED, (double)held->finished);
	finding_evidence(f, FACT_ENDED_LEFT, held->left);
}

/* Return how many of the requests in flight are stuck: many times as old as the ones that ended
 * took. *oldest_ns: the age of the oldest. */
static uint32_t stuck(const struct scene *scene, uint64_t *oldest_ns)
{
	const struct requests_held *held = scene->held;
	uint32_t count = 0;

	*oldest_ns = 0;
	if (!held->life_ns || held->finished < held->alike)
		return 0;
	for (uint32_t i = 0; i < held->alike; i++) {
		uint64_t age = num_less(scene->callsites->moment_ns, held->list[i].since_ns);

		*oldest_ns = num_most(*oldest_ns, age);
		count += age / STUCK_TIMES > held->life_ns;
	}
	return count;
}

/* Return how many requests make up the sum: the alike ones, and smaller ones up to nearly all. */
static uint32_t at_once(const struct requests_held *held)
{
	uint64_t sum = 0;
	uint32_t n = 0;

	while (n < held->count && sum < held->sum - held->sum / NEARLY_PART)
		sum += held->list[n++].bytes;
	return n > held->alike ? n : held->alike;
}

/* Return the part of the refused request that one request at a time would not have made beside the
 * others' memory: with it, the asking one would hold no more than the largest does. */
static uint64_t asked_beside(const struct scene *scene)
{
	const struct requests_held *held = scene->held;
	uint32_t failed = scene->callsites->failed;
	const struct held_request *asks = NULL;
	uint64_t size = scene_asked(scene);

	if (!size || scene_asks_for_thread(scene))
		return 0;
	for (uint32_t i = 0; i < held->count; i++) {
		const struct held_request *h = &held->list[i];

		if (h->lane && h->lane->thread == scene->end.refused->thread &&
		    (!asks || h->lane->last_ns > asks->lane->last_ns))
			asks = h;
	}
	if (!asks && (failed == CALLSITE_NONE || held->callsites[failed].alike < 2))
		return 0;
	return num_less(size, num_less((asks ? asks->bytes : 0) + size, held->largest));
}

/* Claim what other threads' requests hold where this one asked for the first time: one at a time,
 * it would have fit. */
static double beside_asked(const struct scene *scene, struct finding *out)
{
	const struct requests_held *held = scene->held;
	uint64_t size = scene_asked(scene), bytes = 0, largest = 0;
	struct finding f = *out;
	uint32_t count = 1;

	for (uint32_t i = 0; held && i < held->count; i++) {
		if (!scene_asked_beside(scene, i))
			continue;
		count++;
		bytes += held->list[i].all;
		largest = num_most(largest, held->list[i].all);
		for (size_t k = 0; k < held->part_count; k++)
			if (held->parts[k].request == i)
				finding_claim_without(&f, scene->callsites, held->parts[k].callsite,
				    held->parts[k].bytes);
	}
	if (!bytes)
		return 0;
	f.blame = scene->callsites->failed;
	f.request_bytes = num_least(size, largest);
	largest = num_most(size, largest);
	f.strength = ASKED_BESIDE * fmin(1, 0.5 + (double)bytes / (double)scene_live(scene)) *
		     ended_well(held);
	if (scene->limit.bytes && largest > scene->limit.bytes)
		f.strength *= TOO_LARGE;
	finding_evidence(&f, FACT_AT_ONCE, count);
	finding_evidence(&f, FACT_AT_ONCE_BYTES, (double)(bytes + size));
	finding_evidence(&f, FACT_AT_ONCE_REFUSED, (double)size);
	finding_evidence(&f, FACT_AT_ONCE_LARGEST, (double)largest);
	note_ended(&f, held);
	*out = f;
	return f.strength;
}

static double at_work(const struct scene *scene, struct finding *out)
{
	const struct requests_held *held = scene->held;
	struct finding f = *out;
	uint64_t whole = scene_live(scene);
	double kept, sum;
	uint32_t held_up;
	uint64_t oldest;

	if (!held || held->alike < 2 || !held->sum)
		return 0;
	claim(scene, &f, &sum);
	if (f.blame == CALLSITE_NONE || sum < (double)(whole / 100))
		return 0;
	kept = (double)held->largest / (double)held->sum;
	/* Two requests are enough for the shape; their share of the memory is for the rank. */
	f.strength =
	    (0.6 + 0.4 * (1 - kept)) * fmin(1, 0.5 + sum / (double)whole) * ended_well(held);
	if (scene_workers_repeat(scene, f.blame))
		f.strength *= WORKERS_REPEAT;
	/* The largest alone would not have fit. */
	if (scene->limit.bytes && held->largest > scene->limit.bytes)
		f.strength *= TOO_LARGE;
	finding_evidence(&f, FACT_AT_ONCE, (double)at_once(held));
	finding_evidence(&f, FACT_AT_ONCE_BYTES, sum);
	finding_evidence(&f, FACT_AT_ONCE_LARGEST, kept * sum);
	held_up = stuck(scene, &oldest);
	if (held_up > held->alike / 2) {
		f.form = FORM_STUCK;
		finding_evidence(&f, FACT_STUCK, (double)held_up);
		finding_evidence(&f, FACT_STUCK_AGE, (double)oldest);
		finding_evidence(&f, FACT_ENDED_LIFE, (double)held->life_ns);
	}
	f.request_bytes = asked_beside(scene);
	/* One request at a time takes as much as the largest did; no more than it left for the
	 * rest. */
	f.needed_bytes =
	    num_least((uint64_t)(kept * sum), (uint64_t)((1 - kept) * sum) + f.request_bytes);
	f.other_bytes = stacks(scene);
	if (f.other_bytes)
		finding_evidence(&f, FACT_AT_ONCE_STACKS, (double)f.other_bytes);
	note_ended(&f, held);
	*out = f;
	return f.strength;
}

/* Return 0 to 1: how surely the queue has grown. What lives rose by half of what waits, at least,
 * since the middle of the queue's time; work that comes unevenly had reached nearly as much before.
 */
static double has_grown(const struct scene *scene, const struct callsite *p)
{
	const struct timeline *t = &scene->model->timeline;
	uint64_t first = p->facts.first_ns, before = 0;
	uint64_t half = first + num_less(scene->callsites->moment_ns, first) / 2;

	for (uint32_t i = (uint32_t)(first >> t->shift);
	     i < t->used && (i + 1ull) << t->shift <= half; i++)
		before = num_most(before, t->periods[i].most);
	return fmin(1,
	    GROWN_TIMES * (double)num_less(scene_live(scene), before) / (double)p->backlog.bytes);
}

/* Claim queued work: one request at a time is awaited before the next is made. */
static double waiting(const struct scene *scene, struct finding *f)
{
	const struct callsites *callsites = scene->callsites;
	uint64_t most = 0;

	for (uint32_t i = 0; i < callsites->count; i++) {
		const struct callsite *p = &callsites->list[i];
		uint64_t one;

		/* What gets larger and larger is one thing that is enlarged. */
		if (!p->backlog.grows || p->size.grows)
			continue;
		one = p->backlog.bytes / p->backlog.count;
		finding_claim_without(f, callsites, i, p->backlog.bytes - one);
		finding_blame_larger(f, i, p->backlog.bytes, &most);
	}
	if (f->blame == CALLSITE_NONE || most < scene_live(scene) / 100)
		return 0;
	finding_evidence(f, FACT_WAITING, (double)callsites->list[f->blame].backlog.count);
	finding_evidence(f, FACT_BLOCK_BYTES, (double)most);
	finding_evidence(f, FACT_WAITING_SERVED, (double)callsites->list[f->blame].backlog.served);
	finding_evidence(f, FACT_WAITING_NS, (double)callsites->list[f->blame].backlog.wait_ns);
	return f->strength = 0.95 * has_grown(scene, &callsites->list[f->blame]);
}

/* Return the share of live bytes that are left behind, or grow from request to request, outside the
 * open call: similar work leaves as much. */
static double left_behind(const struct scene *scene)
{
	const struct callsites *callsites = scene->callsites;
	uint64_t whole = scene_live(scene), left = 0;

	for (uint32_t i = 0; i < callsites->count; i++) {
		const struct callsite *p = &callsites->list[i];

		if ((p->survivors.stays || p->size.grows) && p->call.open != OPEN_CALL_YES)
			left += p->facts.live_bytes;
	}
	return whole ? (double)left / (double)whole : 1;
}

/* Claim the same work by several processes of a pool, under a limit that they share. */
static double by_workers(const struct scene *scene, struct finding *f)
{
	const struct callsites *callsites = scene->callsites;
	uint64_t own = scene_live(scene), others = scene->others.workers.bytes, most = 0;

	if (scene->space || scene->work || !scene->others.workers.count || !others)
		return 0;
	for (uint32_t i = 0; i < callsites->count; i++)
		if (callsites->list[i].facts.live_bytes > most &&
		    callsites->list[i].owner == OWNER_USER &&
		    !callsite_is_import(&callsites->list[i])) {
			most = callsites->list[i].facts.live_bytes;
			f->blame = i;
		}
	if (f->blame == CALLSITE_NONE)
		return 0;
	f->workers = scene->others.workers.count + 1;
	f->other_bytes = others;
	f->form = FORM_WORKERS;
	f->strength =
	    (0.6 + 0.4 * (double)others / (double)(own + others)) * (1 - left_behind(scene));
	finding_evidence(f, FACT_WORKERS, (double)f->workers);
	finding_evidence(f, FACT_WORKERS_RESIDENT, (double)others);
	finding_evidence(f, FACT_WORKERS_LIVE, (double)own);
	return f->strength;
}

/* Claim what all streams but one have in flight. */
static double on_streams(const struct scene *scene, struct finding *f)
{
	const struct scene_streams *s = &scene->streams;
	uint64_t most = 0;

	if (s->alike < STREAMS_MIN)
		return 0;
	for (uint32_t i = 0; i < scene->callsites->count; i++) {
		if (!s->others[i])
			continue;
		finding_claim_without(f, scene->callsites, i, s->others[i]);
		finding_blame_larger(f, i, s->others[i], &most);
	}
	f->form = FORM_STREAMS;
	f->strength = (0.6 + 0.4 * (1 - (double)s->largest / (double)s->sum)) *
		      fmin(1, 0.5 + (double)s->sum / (double)scene_live(scene));
	finding_evidence(f, FACT_AT_ONCE, (double)s->alike);
	finding_evidence(f, FACT_AT_ONCE_BYTES, (double)s->sum);
	finding_evidence(f, FACT_AT_ONCE_LARGEST, (double)s->largest);
	return f->strength;
}

/* Claim the stacks of all threads but one: threads end with their requests, and many are at work.
 */
static double on_threads(const struct scene *scene, struct finding *f)
{
	const struct scene_limit *l = &scene->limit;
	uint64_t threads = l->threads, each = threads ? l->stacks / threads : 0, stacks;
	double never = scene_threads_unjoined(scene);

	/* Those that ended and are joined later are of the same burst. */
	stacks = l->stacks + (uint64_t)((1 - never) * (double)l->unjoined);
	if (threads < 2 || scene_threads_end(scene) <= 0)
		return 0;
	f->blame = scene->callsites->failed;
	f->form = FORM_STACKS;
	f->other_bytes = stacks - each;
	f->strength =
	    scene_threads_end(scene) *
	    dominance((double)stacks, (double)scene_live(scene) + never * (double)l->unjoined);
	finding_evidence(f, FACT_STACKS, (double)stacks);
	finding_evidence(f, FACT_THREADS, (double)threads);
	finding_evidence(f, FACT_THREADS_ENDED, (double)scene->limit.threads_ended);
	return f->strength;
}

/* If the threads' stacks are larger than what the requests hold, the finding describes the threads
 * and blames the line that starts them. */
static void name_threads(struct finding *work, const struct finding *threads)
{
	if ((work->form != FORM_USUAL && work->form != FORM_STUCK) || threads->strength <= 0 ||
	    work->other_bytes <= work->bytes)
		return;
	work->blame = threads->blame;
	if (work->form == FORM_STUCK)
		return;
	work->form = threads->form;
	work->evidence_count = threads->evidence_count;
	memcpy(work->evidence, threads->evidence, sizeof(work->evidence));
}

static void prefer(struct finding *best, const struct finding *f)
{
	if (f->strength > 0 && f->bytes + f->other_bytes > best->bytes + best->other_bytes)
		*best = *f;
}

int detect_concurrency(const struct scene *scene, struct finding *out)
{
	struct finding work = {.blame = CALLSITE_NONE}, queue = work, workers = work,
		       streams = work, threads = work, asked = work;

	queue.form = FORM_BACKLOG;
	if (!scene->end.failed)
		return DETECT_SILENT;
	at_work(scene, &work);
	beside_asked(scene, &asked);
	if (work.bytes < asked.bytes / 2)
		work = asked;
	waiting(scene, &queue);
	prefer(&work, &queue);
	by_workers(scene, &workers);
	prefer(&work, &workers);
	on_streams(scene, &streams);
	prefer(&work, &streams);
	on_threads(scene, &threads);
	name_threads(&work, &threads);
	prefer(&work, &threads);
	if (work.blame == CALLSITE_NONE || work.strength <= 0)
		return DETECT_SILENT;
	*out = work;
	return 0;
}
