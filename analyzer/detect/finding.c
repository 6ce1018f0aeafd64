/* finding.c - what detectors share: adding to a finding, and questions about a scene. */
#include "detect/detect.h"

#include <math.h>
#include <string.h>

#include "util/num.h"
#include "util/tuned.h"

TUNED(unsigned, LARGER_BLOCKS, 16u,
    "sixteen larger blocks of a line tell what its small ones are used for");
TUNED(double, ENTRY_MOST, 64.0,
    "an entry of an array is a pointer of 8 bytes, a small object has 512 at most");
TUNED(unsigned, WORKER_BLOCKS, 4u,
    "a request holds a block or two of a line, unless it makes them in one go");
TUNED(unsigned, FORM_TIMES, 32u,
    "text takes four times as much in wide characters and some ten times as objects; 32 is beyond "
    "both");
TUNED(unsigned, WIDE_TIMES, 8u,
    "a model that is known as one makes nothing of its input but wider text, twice at most");
TUNED(double, SQUARE_SLOPE, 1.4,
    "between linear (1) and square (2): a square compares parts with each other");
TUNED(unsigned, INPUT_PART, 1024u,
    "an input smaller than a thousandth of the block is not what it was made of");
TUNED(unsigned, CONVERTED_MIN, 4u, "three blocks may come as three others go by chance");
TUNED(unsigned, CONVERTED_TIMES, 8u, "int8 to float64: no cast of a weight makes it larger");
TUNED(unsigned, WITH_MOMENTS, 16u, "enough moments to compare two counts, few enough to be cheap");
TUNED(unsigned, WITH_FIRST, 4u, "a ratio of fewer than four blocks says nothing");
TUNED(double, WITH_SPREAD, 1.3,
    "a store keeps a fixed number of parts an entry; a last one half made moves the ratio by less");
TUNED(unsigned, TELLING_BLOCKS, 3u,
    "a line's first block may be a library's table; two more tell of requests");
TUNED(unsigned, BETWEEN_BLOCKS, 8u,
    "a request makes dozens of blocks, setting up a parameter a handful");
TUNED(unsigned, STOPPED_TIMES, 16u,
    "what comes now and then skips a few turns by chance, not sixteen");
TUNED(unsigned, WORDS, 128u, "an array's shape takes a few words, a request's text more");
TUNED(unsigned, WORKED_BEFORE_PART, 64u,
    "work gives back at least a sixty-fourth of what a request later takes");
TUNED(unsigned, WORKED_BEFORE_TIMES, 16u,
    "requests come again and again; a file is written or fetched once");
TUNED(unsigned, READ_PART, 16u,
    "a float made of each half byte is eight times as large, with room for a doubling");
TUNED(unsigned, FEW_BLOCKS, 512u,
    "a model has a few hundred large parameters, records are thousands");
TUNED(unsigned, SERIES_PART, 16u, "the last of a series may not be finished yet");
TUNED(double, RELEASED_FEW, 2.0, "two buffers are of the start, three of requests");
TUNED(double, QUIET_SHARE, 1.0 / 32,
    "while nothing is served, next to nothing comes and goes: a request gives back a fifth");
TUNED(uint64_t, MANY_ALIKE, 128u, "slots, layers and experts are fewer; requests are not");
TUNED(double, NEARLY_ALIKE, 0.25, "a layer's parameters differ by factors from each other");
TUNED(unsigned, TURNS_MIN, 4u, "fewer blocks may come in turns by chance");
TUNED(unsigned, LINES_MIN, 3u, "a layer has at least three parameters: weight, bias, norm");
TUNED(unsigned, SCATTER_MIN, 24u,
    "of 24 large blocks hardly two are alike only where data of all sizes comes in");
TUNED(unsigned, SCATTER_PART, 16u, "smaller blocks are beside the point");

detector *const detectors[CAUSE_COUNT] = {
#define CAUSE(id, name, detect, class, wording, fixes, what_if, claim) [CAUSE_##id] = detect,
#include "knowledge/causes.def"
};

void finding_claim(
    struct finding *f, uint32_t callsite, enum rule rule, uint64_t value, uint64_t bytes)
{
	f->bytes += bytes;
	if (f->claim_count < CLAIMS_MAX) {
		f->claims[f->claim_count++] = (struct claim){callsite, rule, value, bytes};
		return;
	}
	/* Full: replace the smallest claim. Its bytes leave the sum: no row may hold unclaimed
	 * bytes. */
	uint32_t least = 0;
	for (uint32_t i = 1; i < CLAIMS_MAX; i++)
		if (f->claims[i].bytes < f->claims[least].bytes)
			least = i;
	if (f->claims[least].bytes < bytes) {
		f->bytes -= f->claims[least].bytes;
		f->claims[least] = (struct claim){callsite, rule, value, bytes};
	} else {
		f->bytes -= bytes;
	}
}

void finding_claim_without(
    struct finding *f, const struct callsites *callsites, uint32_t callsite, uint64_t bytes)
{
	uint64_t live = callsites->list[callsite].facts.live_bytes;

	/* The steps may show a little more than the live bytes. */
	bytes = num_least(bytes, live);
	finding_claim(f, callsite, RULE_KEEP_BYTES, live - bytes, bytes);
}

void finding_evidence(struct finding *f, enum fact fact, double value)
{
	if (f->evidence_count < EVIDENCE_MAX)
		f->evidence[f->evidence_count++] = (struct evidence){fact, value};
}

double finding_fact(const struct finding *f, enum fact fact)
{
	for (uint32_t i = 0; i < f->evidence_count; i++)
		if (f->evidence[i].fact == fact)
			return f->evidence[i].value;
	return 0;
}

double finding_stays(const struct callsite *p)
{
	double many =
	    p->survivors.count >= 16 ? 1 : 0.6 + 0.4 / 12 * (double)(p->survivors.count - 4);

	return p->survivors.even * many * fmin(1, 0.4 + p->survivors.late * 1.8);
}

bool scene_keeps_series(const struct callsite *p)
{
	return p->size.grows && p->survivors.stays && p->relations.index_of == CALLSITE_NONE &&
	       p->relations.feeds == CALLSITE_NONE && p->relations.listed_by == CALLSITE_NONE &&
	       p->facts.freed_count <= p->facts.total_count / SERIES_PART;
}

uint64_t finding_claim_tables(const struct scene *scene, struct finding *f,
    bool (*of)(const struct scene *scene, const struct callsite *p))
{
	const struct callsites *callsites = scene->callsites;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < callsites->count; i++) {
		const struct callsite *p = &callsites->list[i];

		if (p->relations.index_of == CALLSITE_NONE ||
		    !of(scene, &callsites->list[p->relations.index_of]))
			continue;
		if (p->relations.index_of != i)
			finding_claim(f, i, RULE_CAP_SIZE, p->size.first, p->size.grown_bytes);
		bytes += p->size.live_bytes;
		if (i == callsites->failed && scene->end.refused && !scene_asks_for_thread(scene) &&
		    scene->end.refused->size > p->size.first)
			f->request_bytes = scene->end.refused->size - p->size.first;
	}
	return bytes;
}

double dominance(double part, double rest)
{
	if (part <= 0)
		return 0;
	return rest <= 0 ? 1 : fmax(0, fmin(1, (log2(part / rest) + 3) / 3));
}

double scene_beside_workers(const struct scene *scene, uint64_t bytes)
{
	return dominance((double)bytes, (double)scene->others.workers.bytes);
}

bool scene_attached(const struct scene *scene)
{
	return scene->model->base.attached;
}

double scene_beside_before(const struct scene *scene, uint64_t bytes)
{
	return scene->limit.before ? dominance((double)bytes, (double)scene->limit.before) : 1;
}

static double freed_share(uint64_t live, uint64_t total)
{
	return total > live ? 1 - (double)live / (double)total : 0;
}

double scene_churn(const struct scene *scene)
{
	const struct model *m = scene->model;

	return freed_share(
	    m->blocks.count + m->maps.count, num_sum(m->total.count, scene->replaced.count));
}

double scene_given_back(const struct scene *scene)
{
	const struct model *m = scene->model;

	return freed_share(
	    m->blocks.bytes + m->maps.bytes, num_sum(m->total.bytes, scene->replaced.bytes));
}

bool scene_maps_in_passing(const struct scene *scene, const struct callsite *p)
{
	uint32_t callsite = (uint32_t)(p - scene->callsites->list);
	uint64_t alive = 0, gone = 0;

	for (size_t i = 0; i < scene->model->stacks.count; i++) {
		const struct stack_stats *s = stack_table_number(&scene->model->stacks, i);

		if (s->kind != STACK_STATS_MAP ||
		    callsites_of_stack(scene->callsites, STACK_STATS_MAP, s->stack) != callsite)
			continue;
		alive += stack_stats_live_count(s);
		gone += stack_stats_freed_count(s);
	}
	return alive && gone >= alive;
}

bool scene_asks_for_thread(const struct scene *scene)
{
	return scene->end.refused && scene->end.refused->api == TRACE_API_THREAD;
}

bool scene_workers_repeat(const struct scene *scene, uint32_t callsite)
{
	const struct callsite *p = &scene->callsites->list[callsite];
	const struct requests_held *held = scene->held;
	const struct held_callsite *h = held ? &held->callsites[callsite] : NULL;
	uint32_t released = h ? h->requests - h->in_one_go : 0; /* threads that also released */

	/* A sample misses most small blocks that come and go: a quarter of the threads is enough.
	 */
	return held && held->of && requests_source(held->of) == REQUESTS_THREADS &&
	       !held->finished && p->survivors.stays &&
	       (!p->size.grows || callsite_indexes_itself(p)) && held->alike &&
	       h->blocks / held->alike >= WORKER_BLOCKS && released &&
	       released >= (scene->sample_every ? h->requests / 4 : h->requests / 2 + 1);
}

double scene_held_times(const struct scene *scene, uint32_t callsite)
{
	const struct callsite *p = &scene->callsites->list[callsite];
	uint64_t small = p->arena_share.any ? num_less(p->facts.map_bytes, callsite_unused(p)) : 0;
	uint64_t larger = num_less(p->facts.live_bytes, p->facts.map_bytes);

	if (!small || !larger || scene->held->callsites[callsite].blocks < LARGER_BLOCKS)
		return 1;
	return 1 + (double)small / (double)larger;
}

bool scene_asked_beside(const struct scene *scene, uint32_t of)
{
	const struct requests_held *held = scene->held;
	uint32_t failed = scene->callsites->failed;
	uint64_t there = 0;

	if (!held || !scene->end.refused || failed == CALLSITE_NONE || scene_asks_for_thread(scene))
		return false;
	for (size_t i = 0; i < held->part_count; i++) {
		const struct held_part *h = &held->parts[i];
		const struct lane *l = held->list[h->request].lane;

		if (h->callsite != failed)
			continue;
		if (l->task || l->thread == scene->end.refused->thread)
			return false;
		there += h->request == of ? h->bytes : 0;
	}
	return there >= scene->end.refused->size / REQUESTS_ALIKE &&
	       scene->end.refused->size >= there / REQUESTS_ALIKE;
}

bool scene_has_arenas(const struct callsite *p)
{
	return p->arena_share.any && p->survivors.stays && p->owner == OWNER_USER &&
	       !callsite_is_import(p) && p->facts.map_bytes > p->facts.live_bytes / 2;
}

double scene_arenas_in_flight(const struct scene *scene)
{
	const struct requests_held *held = scene->held;
	double arenas = 0, arrays = 0, in_flight = 0;

	if (scene->space || !held || !held->finished || held->left >= 0.5)
		return 0;
	for (uint32_t i = 0; i < scene->callsites->count; i++) {
		const struct callsite *p = &scene->callsites->list[i];
		const struct held_callsite *h = &held->callsites[i];
		uint64_t beside = num_less(p->facts.live_bytes, p->facts.map_bytes);

		if (!p->survivors.stays || p->owner != OWNER_USER || callsite_is_import(p))
			continue;
		arenas += scene_has_arenas(p) ? (double)p->facts.map_bytes : 0;
		arrays += (double)beside;
		in_flight += h->alike < 2 ? 0 : (double)num_least(h->bytes, beside);
	}
	return arrays * ENTRY_MOST >= arenas ? in_flight / fmax(arrays, 1) : 0;
}

double scene_in_flight(const struct scene *scene, uint32_t callsite, uint64_t kept)
{
	const struct callsite *p = &scene->callsites->list[callsite];
	const struct held_callsite *h = scene->held ? &scene->held->callsites[callsite] : NULL;
	double arenas = h && scene_has_arenas(p) ? scene_arenas_in_flight(scene) : 0;

	if (!h || h->alike < 2 || !kept || scene_workers_repeat(scene, callsite) ||
	    (scene->held->finished && scene->held->left >= 0.5))
		return arenas;
	return fmax(
	    arenas, fmin(1, (double)h->bytes * scene_held_times(scene, callsite) / (double)kept));
}

bool scene_is_weights(const struct scene *scene, uint32_t callsite)
{
	return scene->space && scene->roles && scene->roles[callsite] == ROLE_WEIGHTS_LOAD;
}

bool scene_asks_for(const struct scene *scene, enum role role)
{
	return scene->end.refused && scene->roles && scene->callsites->failed != CALLSITE_NONE &&
	       scene->roles[scene->callsites->failed] == role;
}

/* True for roles that do other work than reading a prompt. */
static bool is_beside_model(enum role role)
{
	return role == ROLE_EMBEDDING || role == ROLE_TOOL_CALL || role == ROLE_DOCUMENT_LOADER ||
	       role == ROLE_SPLITTER || role == ROLE_RETRIEVAL;
}

bool scene_amplifies(const struct scene *scene, uint32_t callsite)
{
	const struct proportion_found *found = &scene->callsites->proportion;
	enum role role;
	bool model;

	if (callsite == CALLSITE_NONE || found->callsite != callsite)
		return false;
	/* Each token with each, in every layer: attention. */
	if (found->layered && found->slope >= SQUARE_SLOPE)
		return true;
	/* On a device, a larger batch has the same effect as a longer prompt. */
	if (scene->space)
		return false;
	role = scene->roles ? scene->roles[callsite] : ROLE_NONE;
	model = role == ROLE_MODEL_CALL || role == ROLE_KV_CACHE || role == ROLE_ATTENTION;
	if (is_beside_model(role))
		return false;
	return found->target / found->input >= (model ? WIDE_TIMES : FORM_TIMES) &&
	       (model || found->slope < SQUARE_SLOPE);
}

double scene_share_of(const struct scene *scene, enum role role)
{
	uint64_t bytes = 0, whole = scene_live(scene);

	for (uint32_t i = 0; scene->roles && i < scene->callsites->count; i++)
		if (scene->roles[i] == role)
			bytes += scene->callsites->list[i].facts.live_bytes;
	return whole ? (double)bytes / (double)whole : 0;
}

bool scene_asks_beside_weights(const struct scene *scene)
{
	const struct callsites *callsites = scene->callsites;
	uint64_t size, others = 0;

	if (!scene->space || !scene->end.refused || callsites->failed == CALLSITE_NONE ||
	    !scene->roles)
		return false;
	size = scene->end.refused->size;
	for (uint32_t i = 0; i < callsites->count; i++)
		if (scene->roles[i] != ROLE_WEIGHTS_LOAD)
			others += callsites->list[i].facts.live_bytes;
	return !callsites->list[callsites->failed].facts.total_count && callsites->live_bytes &&
	       size > callsites->live_bytes && others < size / INPUT_PART &&
	       others < callsites->live_bytes / 2 && !scene_asks_for(scene, ROLE_WEIGHTS_LOAD);
}

bool scene_in_store(const struct scene *scene, const struct callsite *p)
{
	return scene->roles && role_is_store(scene->roles[p - scene->callsites->list]);
}

/* True if a fixed number of `a`'s blocks stays for each of `b`'s, at all times. */
static bool stay_together(const struct callsite *a, const struct callsite *b, uint64_t moment_ns)
{
	uint64_t from = num_most(a->facts.first_ns, b->facts.first_ns);
	double least = 0, most = 0;

	for (uint32_t i = WITH_FIRST; i <= WITH_MOMENTS; i++) {
		uint64_t at = from + (moment_ns - from) / WITH_MOMENTS * i;
		double other = survivors_count_until(b, at);
		double each = other > 0 ? survivors_count_until(a, at) / other : 0;

		if (each <= 0)
			return false;
		least = i == WITH_FIRST || each < least ? each : least;
		most = each > most ? each : most;
	}
	return most <= WITH_SPREAD * least;
}

bool scene_kept_with_store(const struct scene *scene, const struct callsite *p)
{
	if (!p->survivors.stays || callsite_is_import(p))
		return false;
	for (uint32_t i = 0; i < scene->callsites->count; i++) {
		const struct callsite *store = &scene->callsites->list[i];

		if (store != p && store->survivors.stays && scene_in_store(scene, store) &&
		    store->survivors.bytes >= p->survivors.bytes &&
		    stay_together(p, store, scene->callsites->moment_ns))
			return true;
	}
	return false;
}

/* Return all call sites of the process, also if the scene is about a part of it. */
static const struct callsites *all_callsites(const struct scene *scene)
{
	return scene->work ? scene->work->callsites : scene->callsites;
}

static const struct model *all_model(const struct scene *scene)
{
	return scene->work ? scene->work->model : scene->model;
}

/* Return the share of its released blocks that realloc() moved: their bytes live on. */
static double moved_share(const struct callsite *p)
{
	return p->facts.freed_count ? (double)p->facts.moved_count / (double)p->facts.freed_count
				    : 0;
}

/* Return the released share since, of bytes or of blocks. */
static double released_since(const struct scene *scene, uint64_t since_ns, bool bytes)
{
	const struct callsites *callsites = all_callsites(scene);
	double acquired = 0, released = 0, variance = 0;

	for (uint32_t i = 0; i < callsites->count; i++) {
		const struct callsite *p = &callsites->list[i];
		double enlarged = moved_share(p);

		for (uint32_t k = 0; k < p->facts.step_count; k++) {
			const struct step *s = &p->facts.steps[k];
			double part = 1;

			if (s->last_ns < since_ns)
				continue;
			if (s->time_ns < since_ns)
				part = (double)(s->last_ns - since_ns) /
				       (double)(s->last_ns - s->time_ns);
			acquired += part * (double)(bytes ? s->bytes : s->count);
			if (s->max < WORDS)
				continue;
			released += part * (1 - enlarged) *
				    (double)(bytes ? s->freed_bytes : s->freed_count);
			/* One recorded block of a sample stands for sample_every / its size. */
			if (s->max < scene->sample_every)
				variance += (double)s->freed_count * (double)scene->sample_every /
					    (double)s->max;
		}
	}
	/* A start releases a buffer or two of its own, and a sample's error is no evidence. */
	if (!bytes)
		released = fmax(0, released - RELEASED_FEW - sqrt(variance));
	return acquired > 0 ? released / acquired : 0;
}

double scene_worked_since(const struct scene *scene, uint64_t since_ns)
{
	return released_since(scene, since_ns, true);
}

bool scene_is_quiet_since(const struct scene *scene, uint64_t since_ns)
{
	return released_since(scene, since_ns, true) < QUIET_SHARE;
}

double scene_released_since(const struct scene *scene, uint64_t since_ns)
{
	return released_since(scene, since_ns, false);
}

/* True if its blocks are much of a size, as requests of one kind are: parameters of a layer differ
 * by factors. */
static bool nearly_alike(const struct callsite *p)
{
	return (double)p->facts.largest * (double)p->facts.live_count <=
	       (double)p->facts.live_bytes * (1 + NEARLY_ALIKE);
}

bool scene_many_alike(const struct scene *scene, const struct callsite *p)
{
	/* A sample's count is mostly of small blocks, which it takes in any order. */
	uint64_t count = scene->sample_every ? callsite_large_blocks(p) : p->facts.live_count;

	return (count > MODEL_BLOCKS ||
		   (p->facts.live_count > MANY_ALIKE &&
		       (callsite_is_uniform(p) || nearly_alike(p) || scene_sizes_scatter(p) ||
			   (!scene->sample_every && scene_in_no_order(p))))) &&
	       !scene_in_company(scene, p);
}

/* Find the step from which a line's large blocks follow each other. Work that a line does only once
 * (a library's tables, its threads) ends with its first blocks, and says nothing of requests if
 * there are later blocks to tell. */
static const struct step *after_first(const struct callsite *p)
{
	uint64_t large = 0;

	if (callsite_large_blocks(p) < TELLING_BLOCKS)
		return p->facts.steps;
	for (uint32_t k = 0; k < p->facts.step_count; k++) {
		if (p->facts.steps[k].max <= p->facts.largest / 2)
			continue;
		if (large++)
			return &p->facts.steps[k];
		if (p->facts.steps[k].bytes > p->facts.largest + p->facts.largest / 2)
			break;
	}
	return p->facts.steps;
}

/* True if the stack leads through the call site's own line. */
static bool is_of_line(const struct feed *feed, uint32_t stack, const struct callsite *p)
{
	const struct symbol *symbols;
	size_t count = stack ? feed->symbols(feed->self, stack, &symbols) : 0;

	while (count && !callsite_is_line(p, &symbols[count - 1]))
		count--;
	return count > 0;
}

bool scene_made_no_more(const struct scene *scene, const struct callsite *p, uint64_t most)
{
	const struct model *m = all_model(scene);
	const struct step *from = after_first(p);
	uint64_t sum = 0;

	if (!scene->work && scene->callsites->moment_serial - from->serial <= most)
		return true;
	for (size_t i = 0; i < m->stacks.count && sum <= most; i++) {
		const struct stack_stats *s = stack_table_number(&m->stacks, i);
		uint64_t here = 0;

		for (uint32_t k = 0, used = stack_stats_used(s); k < used; k++) {
			struct cohort own;
			const struct cohort *c = stack_stats_cohort(s, k, &own);

			here += c->time_ns >= from->time_ns ? c->count : 0;
		}
		if (here && !is_of_line(&m->feed, s->stack, p))
			sum += here;
	}
	return sum <= most;
}

/* Return how many blocks born in that time were released, and not enlarged. `timed`: the moments
 * are times, else serials. Counts until `most`. */
static uint64_t went_between(
    const struct model *m, uint64_t from, uint64_t until, bool timed, uint64_t most)
{
	uint64_t went = 0;

	for (size_t i = 0; i < m->stacks.count && went <= most; i++) {
		const struct stack_stats *s = stack_table_number(&m->stacks, i);
		uint64_t here = 0;

		for (uint32_t k = 0, used = stack_stats_used(s); k < used; k++) {
			struct cohort own;
			const struct cohort *c = stack_stats_cohort(s, k, &own);
			uint64_t at = timed ? c->time_ns : c->serial;

			if (at >= from && at < until && c->max >= WORDS)
				here += c->freed_count;
		}
		/* A block that is enlarged lives on. */
		went += num_less(here, stack_stats_moved_count(s));
	}
	return went;
}

bool scene_worked_between(const struct scene *scene, const struct callsite *p)
{
	uint64_t from, until, most;
	/* Each model numbers its own blocks; the time is the same in all. */
	bool timed = scene->work != NULL;

	if (scene->space || !p->facts.step_count || !p->facts.largest)
		return false;
	most = BETWEEN_BLOCKS * callsite_large_blocks(p);
	from = timed ? after_first(p)->time_ns : after_first(p)->serial;
	until = timed ? p->facts.last_ns : p->facts.steps[p->facts.step_count - 1].serial;
	return until - from > most &&
	       went_between(all_model(scene), from, until, timed, most) > most;
}

bool scene_has_stopped(const struct scene *scene, const struct callsite *p)
{
	const struct model *m = all_model(scene);
	uint64_t blocks = callsite_large_blocks(p), between, most;

	/* A sample misses most of what comes and goes. */
	if (scene->space || scene->sample_every || blocks < TURNS_MIN)
		return false;
	/* Serials count the blocks since: often too few came. */
	if (!scene->work && p->facts.step_count &&
	    num_less(scene->callsites->moment_serial,
		p->facts.steps[p->facts.step_count - 1].serial) <= STOPPED_TIMES)
		return false;
	between = went_between(m, p->facts.first_ns, p->facts.last_ns, true, UINT64_MAX);
	most = STOPPED_TIMES * (between / (blocks - 1) + 1);
	return went_between(m, p->facts.last_ns, scene->callsites->moment_ns, true, most) > most;
}

bool scene_worked_before(
    const struct scene *scene, uint64_t since_ns, uint64_t bytes, uint64_t copy)
{
	const struct callsites *callsites = all_callsites(scene);
	const struct timeline *timeline = &all_model(scene)->timeline;
	double released = 0, lived = (double)timeline_live(timeline, since_ns), part;
	uint64_t from, until;

	part = timeline_between(timeline, since_ns, &from, &until);

	for (uint32_t i = 0; i < callsites->count; i++) {
		const struct callsite *p = &callsites->list[i];
		double here = 0;
		uint64_t times = 0;

		lived -= (1 - part) * survivors_bytes_until(p, from) +
			 part * survivors_bytes_until(p, until);

		if (p->owner != OWNER_USER || strcmp(p->function, "<module>") == 0)
			continue;
		for (uint32_t k = 0;
		     k < p->facts.step_count && p->facts.steps[k].last_ns < since_ns; k++) {
			here += (double)p->facts.steps[k].freed_bytes;
			times += p->facts.steps[k].freed_count;
		}
		released += times >= WORKED_BEFORE_TIMES ? here : 0;
	}
	/* Bytes that lived then and were released since are no earlier work. */
	released -= fmax(0, lived);
	return released > (double)bytes / WORKED_BEFORE_PART + (double)copy;
}

bool scene_reads_weights(const struct scene *scene, const struct callsite *of)
{
	uint64_t moment = scene->callsites->moment_ns, last = 0;
	double read = 0;

	for (uint32_t i = 0; scene->roles && i < scene->callsites->count; i++) {
		const struct callsite *p = &scene->callsites->list[i];

		if (scene->roles[i] != ROLE_WEIGHTS_LOAD)
			continue;
		for (uint32_t k = 0; k < p->facts.step_count; k++)
			if (p->facts.steps[k].last_ns >= of->facts.first_ns)
				read += (double)p->facts.steps[k].bytes;
		last = p->facts.last_ns > last ? p->facts.last_ns : last;
	}
	return read >= (double)of->facts.live_bytes / READ_PART && last > of->facts.first_ns &&
	       moment - last <= (moment - of->facts.first_ns) / 4;
}

uint32_t scene_converts(const struct scene *scene, uint32_t callsite)
{
	const struct callsites *callsites = scene->callsites;
	const struct callsite *p = &callsites->list[callsite];

	for (uint32_t i = 0; i < callsites->count && p->facts.live_count >= CONVERTED_MIN; i++) {
		const struct callsite *o = &callsites->list[i];

		/* The newest block's source still lives, and perhaps the one before it. */
		if (i != callsite && o->facts.last_ns <= p->facts.first_ns &&
		    o->facts.total_count >= p->facts.total_count &&
		    o->facts.freed_count <= p->facts.total_count &&
		    o->facts.freed_count + 2 >= p->facts.total_count &&
		    o->facts.largest >= p->facts.largest / CONVERTED_TIMES)
			return i;
	}
	return CALLSITE_NONE;
}

bool scene_few_large(const struct scene *scene, const struct callsite *p)
{
	uint64_t whole = scene_live(scene);

	/* The interpreter's arenas are large, but the objects in them are small. */
	return p->facts.live_count &&
	       p->facts.live_bytes / p->facts.live_count >= whole / FEW_BLOCKS / 4 &&
	       !(p->arena_share.any && p->facts.map_bytes > p->facts.live_bytes / 2);
}

bool scene_in_turns(const struct scene *scene, const struct callsite *p)
{
	uint32_t lines = 0;

	if (p->facts.live_count < TURNS_MIN || p->facts.freed_count)
		return false;
	for (uint32_t i = 0; i < scene->callsites->count; i++) {
		const struct callsite *o = &scene->callsites->list[i];
		uint64_t from = num_most(o->facts.first_ns, p->facts.first_ns);
		uint64_t until = num_least(o->facts.last_ns, p->facts.last_ns);

		lines += !o->facts.freed_count && o->facts.live_count + 1 >= p->facts.live_count &&
			 o->facts.live_count <= p->facts.live_count + 1 &&
			 o->facts.live_bytes >= p->facts.live_bytes / 64 && until > from &&
			 until - from >= (p->facts.last_ns - p->facts.first_ns) / 4 * 3;
	}
	return lines >= LINES_MIN;
}

bool scene_sizes_drift(const struct callsite *p)
{
	if (p->facts.step_count < 2 || callsite_is_uniform(p))
		return false;
	for (uint32_t k = 1; k < p->facts.step_count; k++)
		if (p->facts.steps[k].min < p->facts.steps[k - 1].max)
			return false;
	return true;
}

bool scene_sizes_scatter(const struct callsite *p)
{
	uint64_t sizes[CALLSITE_STEPS];
	uint32_t count = 0, again = 0;

	for (uint32_t i = 0; i < p->facts.step_count; i++) {
		uint32_t k = 0;

		if (p->facts.steps[i].max < p->facts.largest / SCATTER_PART)
			continue;
		while (k < count && sizes[k] != p->facts.steps[i].max)
			k++;
		again += k < count;
		sizes[count++] = p->facts.steps[i].max;
	}
	return count >= SCATTER_MIN && again <= count / 4;
}
