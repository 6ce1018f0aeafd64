#include "verdict/ledger/classes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "detect/pool.h"
#include "util/num.h"
#include "util/tuned.h"

TUNED(uint64_t, NOTABLE_PART, 200,
    "smaller call sites do not change a row as it is printed: half a percent");
TUNED(uint64_t, LARGE_BLOCK, 64u << 10,
    "parameters and pools are larger, what a program's start leaves behind is smaller");
TUNED(uint64_t, LARGE_PART, 20, "what a program's start leaves behind is less than that of all");
TUNED(uint64_t, ONE_OFF_BLOCKS, 4, "one result and the copies that it is made from");
TUNED(uint64_t, ONE_OFF_PART, 10, "an ordinary request's largest block is less than that of all");
TUNED(uint64_t, LOADING_PART, 8,
    "a server loads in the first part of a run that fails while it serves");

static const struct {
	const char *name;
	/* A finding charges everything at its call site, not only its claim. */
	bool whole;
} classes[CLASS_COUNT] = {
    [CLASS_WEIGHTS] = {"weights", true},
    [CLASS_POOLS] = {"preallocated pools", true},
    [CLASS_PROMPT] = {"grows with the prompt", false},
    [CLASS_RETAINED] = {"retained state", false},
    [CLASS_LEAKED] = {"leaked", false},
    [CLASS_REQUESTS] = {"working sets of requests", true},
    [CLASS_ONE_OFF] = {"one-off intermediates", false},
};

static const enum live_class of_cause[CAUSE_COUNT] = {
    [CAUSE_UNKNOWN] = CLASS_NONE,
#define CAUSE(id, name, detect, class, wording, fixes, what_if, claim) [CAUSE_##id] = class,
#include "knowledge/causes.def"
};

const char *class_name(enum live_class class)
{
	return classes[class].name;
}

enum live_class class_of_cause(enum cause cause)
{
	return of_cause[cause];
}

struct work {
	const struct classes_input *in;
	struct classes *out;
	uint64_t *left; /* by call site: bytes without a class */
};

/* Move `bytes`, but at most *from. */
static void move(uint64_t bytes, uint64_t *from, uint64_t *to)
{
	bytes = num_least(bytes, *from);
	*from -= bytes;
	*to += bytes;
}

/* Put that many bytes of the call site in the class: its blocks first, then its mappings. Most call
 * sites have one or the other. */
static void charge(struct work *w, uint32_t at, enum live_class class, uint64_t bytes)
{
	const struct callsite *p = &w->in->callsites->list[at];
	uint64_t left = w->left[at], heap, maps, shared;
	uint64_t of_maps = num_least(left, p->facts.map_bytes - callsite_unused(p));

	bytes = num_least(bytes, left);
	/* Of several, the best finding's, which comes first. */
	if (bytes && w->in->callsites->classes && !w->in->callsites->classes[at])
		w->in->callsites->classes[at] = (uint8_t)(1 + class);
	heap = num_least(bytes, left - of_maps);
	maps =
	    num_least(bytes - heap, num_less(of_maps, p->facts.shared_bytes + p->facts.file_bytes));
	shared = num_least(bytes - heap - maps, num_less(of_maps, maps + p->facts.file_bytes));
	w->left[at] -= bytes;
	move(heap, &w->out->heap_other, &w->out->of[class].heap);
	move(maps, &w->out->maps_other, &w->out->of[class].maps);
	move(shared, &w->out->shared_other, &w->out->of[class].shared);
	move(bytes - heap - maps - shared, &w->out->files_other, &w->out->of[class].maps);
}

static bool is_large(const struct classes_input *in, const struct callsite *p, uint64_t whole)
{
	return in->device ||
	       (p->facts.live_count && p->facts.live_bytes / p->facts.live_count >= LARGE_BLOCK &&
		   p->facts.live_bytes >= whole / LARGE_PART);
}

/* callsite_is_working_set() needs old blocks: after one long life hardly any block is old. */
static bool is_work(const struct work *w, const struct callsite *p)
{
	return p->facts.freed_count >= p->facts.live_count &&
	       callsite_is_working_set(p, w->in->callsites->moment_ns);
}

/* True for a server's work; false for a small value here and there. */
static bool is_notable_work(const struct work *w, const struct callsite *p, uint64_t whole)
{
	return p->facts.total_bytes >= whole / LARGE_PART &&
	       (w->in->device || p->facts.largest >= LARGE_BLOCK) && is_work(w, p);
}

enum when {
	NEVER_WORKED,
	BEFORE_WORK, /* complete before work began */
	AMID_WORK,
};

/* Tell when the call site's blocks were made. Staging copies come and go as well, but only while
 * parameters are made; work goes on. */
static enum when when_made(const struct work *w, const struct callsite *p, uint64_t whole)
{
	const struct callsites *callsites = w->in->callsites;
	enum when when = NEVER_WORKED;

	for (uint32_t i = 0; i < callsites->count; i++) {
		const struct callsite *q = &callsites->list[i];

		if (q == p || q->facts.last_ns <= p->facts.last_ns || !is_notable_work(w, q, whole))
			continue;
		if (q->facts.first_ns < p->facts.last_ns)
			return AMID_WORK;
		when = BEFORE_WORK;
	}
	return when;
}

static bool is_after_work(const struct work *w, const struct callsite *p, uint64_t whole)
{
	const struct callsites *callsites = w->in->callsites;

	for (uint32_t i = 0; i < callsites->count; i++)
		if (callsites->list[i].facts.first_ns < p->facts.first_ns &&
		    is_notable_work(w, &callsites->list[i], whole))
			return true;
	return false;
}

/* True if other work was recorded beside it; before a checkpoint, early blocks were loaded. */
static bool work_is_known(const struct callsites *callsites, const struct callsite *p)
{
	uint64_t past = num_less(callsites->replaced_until_ns, callsites->first_ns);

	return !callsites->replaced_until_ns || p->facts.first_ns > callsites->replaced_until_ns ||
	       p->facts.last_ns <= callsites->first_ns + past / LOADING_PART;
}

/* True if it is large, complete before work began, and kept since. */
static bool is_early(const struct work *w, uint32_t at, uint64_t whole)
{
	const struct callsite *p = &w->in->callsites->list[at];

	return !w->in->attached && p->facts.freed_count == 0 && is_large(w->in, p, whole) &&
	       when_made(w, p, whole) == BEFORE_WORK && work_is_known(w->in->callsites, p);
}

/* The same for a server that makes all buffers up front, so that its work acquires nothing: true if
 * they were made in the first part of the run, and nearly all kept. */
static bool is_from_the_start(const struct work *w, uint32_t at)
{
	const struct callsites *callsites = w->in->callsites;
	const struct callsite *p = &callsites->list[at];
	uint64_t run = num_less(callsites->moment_ns, callsites->first_ns);

	return !w->in->attached && p->facts.last_ns <= callsites->first_ns + run / LOADING_PART &&
	       num_less(p->facts.total_bytes, p->facts.live_bytes) <=
		   p->facts.live_bytes / LARGE_PART;
}

/* True if the verdict says that nothing grows: then what another cause would claim is no row. */
static bool is_steady(const struct classes_input *in)
{
	return in->candidate_count && in->candidates[0].finding.cause == CAUSE_EXTERNAL &&
	       in->candidates[0].finding.steady;
}

static void charge_findings(struct work *w, uint64_t whole)
{
	for (size_t n = 0; n < w->in->candidate_count && !w->in->undecided; n++) {
		const struct candidate *c = &w->in->candidates[n];
		enum live_class class = class_of_cause(c->finding.cause);

		if (class == CLASS_NONE || (n > 0 && !c->admissible))
			continue;
		if (is_steady(w->in) && class != CLASS_WEIGHTS && class != CLASS_POOLS &&
		    class != CLASS_REQUESTS)
			continue;
		for (uint32_t i = 0; i < c->finding.claim_count; i++) {
			const struct claim *claim = &c->finding.claims[i];

			/* Large blocks from before any work belong to no single request. */
			if (class == CLASS_ONE_OFF &&
			    (n > 0 || claim->callsite != c->finding.blame) &&
			    (is_early(w, claim->callsite, whole) ||
				is_from_the_start(w, claim->callsite)))
				continue;
			charge(w, claim->callsite, class,
			    classes[class].whole ? UINT64_MAX : claim->bytes);
		}
	}
}

/* Return the class that the call site's history shows, or CLASS_NONE. */
static enum live_class shape_of(const struct work *w, uint32_t at, uint64_t whole)
{
	const struct callsites *callsites = w->in->callsites;
	const struct callsite *p = &callsites->list[at];
	enum role role = w->in->roles ? w->in->roles[at] : ROLE_NONE;
	/* A library's buffer from its loading is no model. */
	bool early = is_early(w, at, whole) && !callsite_is_import(p);

	if (role == ROLE_WEIGHTS_LOAD)
		return CLASS_WEIGHTS;
	if (role == ROLE_KV_CACHE && (early || is_from_the_start(w, at)))
		return CLASS_POOLS;
	if (role_is_store(role))
		return CLASS_RETAINED;
	if (is_work(w, p))
		return CLASS_REQUESTS;
	if (p->size.grows && !p->size.geometric)
		return CLASS_PROMPT;
	if (early && p->facts.live_count > 1 && p->facts.live_count <= POOL_BLOCKS &&
	    callsite_is_uniform(p) &&
	    p->facts.last_ns - p->facts.first_ns <= callsites->moment_ns / POOL_GO_PART)
		return CLASS_POOLS;
	if (early)
		return CLASS_WEIGHTS;
	if (p->survivors.stays)
		return p->call.open == OPEN_CALL_YES ? CLASS_REQUESTS : CLASS_RETAINED;
	if (p->facts.total_count <= ONE_OFF_BLOCKS && p->facts.live_bytes >= whole / ONE_OFF_PART &&
	    is_after_work(w, p, whole))
		return CLASS_ONE_OFF;
	return CLASS_NONE;
}

static void charge_shapes(struct work *w, uint64_t whole)
{
	const struct classes_input *in = w->in;

	for (uint32_t i = 0; i < in->callsites->count; i++) {
		const struct callsite *p = &in->callsites->list[i];
		uint64_t maps =
		    num_least(num_least(w->left[i], p->facts.map_bytes), w->out->maps_other);
		enum live_class class;

		if (p->arena_share.any) {
			w->out->arenas += maps;
			w->out->maps_other -= maps;
			w->left[i] -= maps;
		}
		if (w->left[i] < whole / NOTABLE_PART)
			continue;
		class = shape_of(w, i, whole);
		if (in->undecided && class != CLASS_WEIGHTS && class != CLASS_POOLS)
			continue;
		if (class != CLASS_NONE)
			charge(w, i, class, UINT64_MAX);
	}
}

int classes_make(const struct classes_input *in, struct classes *out)
{
	struct work w = {.in = in, .out = out};

	memset(out, 0, sizeof(*out));
	out->heap_other = in->heap_bytes;
	out->maps_other = num_less(in->map_bytes, in->shared_bytes + in->file_bytes);
	out->shared_other = num_least(in->shared_bytes, in->map_bytes);
	out->files_other = num_least(in->file_bytes, in->map_bytes - out->shared_other);
	if (!in->callsites)
		return 0;
	w.left = calloc(in->callsites->count + 1u, sizeof(*w.left));
	if (!w.left)
		return -ENOMEM;
	if (in->callsites->classes)
		memset(in->callsites->classes, 0, in->callsites->count);
	for (uint32_t i = 0; i < in->callsites->count; i++) {
		uint64_t unused =
		    num_least(callsite_unused(&in->callsites->list[i]), out->maps_other);

		w.left[i] = num_less(in->callsites->list[i].facts.live_bytes, unused);
		out->arenas_free += unused;
		out->maps_other -= unused;
	}
	charge_findings(&w, in->heap_bytes + in->map_bytes);
	charge_shapes(&w, in->heap_bytes + in->map_bytes);
	free(w.left);
	return 0;
}
