#include "verdict/device/device_cause.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/callsite/open_call.h"
#include "model/space/space_map.h"
#include "util/num.h"
#include "util/text/fmt.h"
#include "util/text/str.h"
#include "util/tuned.h"
#include "verdict/device/device_rewrite.h"
#include "verdict/judge/coverage.h"
#include "verdict/judge/decide.h"
#include "verdict/judge/judge.h"
#include "verdict/judge/rank.h"
#include "verdict/ledger/host_slack.h"
#include "verdict/request/flow.h"
#include "verdict/request/waited.h"
#include "verdict/wording/ending.h"
#include "verdict/wording/fixes.h"
#include "verdict/wording/words.h"

TUNED(uint64_t, UNACCOUNTED_PART, 2,
    "with most of the used memory in no event, the cause may be there as well");
TUNED(uint64_t, LEAST_SPLIT_MIB, 32,
    "PyTorch refuses a max_split_size_mb of 20 and less; below 32 it hardly caches large blocks");
TUNED(uint64_t, MOST_SPLIT_MIB, 512,
    "larger blocks than that are few, and keeping them whole changes little");
TUNED(double, NOT_CURED, 0.8,
    "the holes in one piece would have held the request, but no setting would have joined them");

static uint32_t callsite_of_stats(
    const struct callsites *callsites, const struct space_map *map, uint32_t stats)
{
	uint32_t stack = stats == MAP_HOLE ? UINT32_MAX : map->callsites.items[stats].stack;

	return callsites_of_stack(callsites, STACK_STATS_HEAP, stack);
}

/* Compute the holes of segments with live blocks, and the call site that borders on most. */
static int slack_of(
    const struct space_map *map, const struct callsites *callsites, struct scene_slack *slack)
{
	uint64_t *beside = calloc(callsites->count + 1u, sizeof(*beside));

	if (!beside)
		return -ENOMEM;
	slack->known = true;
	for (size_t i = 0; i < map->segments.count; i++) {
		const struct map_segment *s = &map->segments.items[i];

		/* A graph's pool has nothing for others, in whatever pieces. */
		for (size_t k = s->first; s->live_blocks && !s->captured && k < s->first + s->count;
		     k++) {
			const struct map_piece *p = &map->pieces.items[k];
			uint64_t size = p->end - p->start;
			uint32_t before, after;

			if (p->callsite != MAP_HOLE)
				continue;
			slack->bytes += size;
			before = k > s->first ? callsite_of_stats(callsites, map, p[-1].callsite)
					      : CALLSITE_NONE;
			after = k + 1 < s->first + s->count
				    ? callsite_of_stats(callsites, map, p[1].callsite)
				    : CALLSITE_NONE;
			slack_hole(slack, beside, size, before, after);
		}
	}
	slack->pinned_by = slack_most(beside, callsites->count, 0);
	free(beside);
	return 0;
}

/* What was acquired in captures, by call site, and the free memory of those segments. */
static int read_graphs(const struct model *then, const struct space *sp,
    const struct callsites *callsites, const struct space_map *map, struct scene_graphs *graphs,
    uint64_t **bytes)
{
	const struct spaces *s = then->spaces;

	if (!s->captures.count)
		return 0;
	*bytes = calloc(callsites->count + 1u, sizeof(**bytes));
	if (!*bytes)
		return -ENOMEM;
	*graphs = (struct scene_graphs){.captures = s->captures.count,
	    .launches = s->captures.launches,
	    .first_ns = s->captures.first_ns,
	    .bytes = *bytes,
	    .capturing = s->captures.open > 0};
	for (uint32_t i = 0; i < s->used; i++) {
		const struct space_block *b = spaces_block(s, i);
		uint32_t callsite =
		    b->used && b->captured && b->space == sp->index
			? callsites_of_stack(callsites, STACK_STATS_HEAP, b->block.stack)
			: CALLSITE_NONE;

		if (callsite != CALLSITE_NONE)
			(*bytes)[callsite] += b->block.size;
	}
	for (size_t i = 0; i < map->segments.count; i++)
		if (map->segments.items[i].captured)
			graphs->slack += map->segments.items[i].hole_bytes;
	return 0;
}

/* Return the call site of a block in flight there: one whose blocks come and go. */
static uint32_t in_flight_at(
    const struct space_block *b, const struct space *sp, const struct callsites *callsites)
{
	uint32_t at = b->used && b->space == sp->index
			  ? callsites_of_stack(callsites, STACK_STATS_HEAP, b->block.stack)
			  : CALLSITE_NONE;

	return at != CALLSITE_NONE && callsites->list[at].facts.freed_count >=
					  callsites->list[at].facts.live_count / 2
		   ? at
		   : CALLSITE_NONE;
}

/* Compute what the streams have in flight: *held by stream, *others by call site. */
static int sum_streams(const struct spaces *s, const struct space *sp,
    const struct callsites *callsites, struct map *held, struct scene_streams *out,
    uint64_t *others)
{
	uint64_t largest = 0, *bytes;

	for (uint32_t i = 0; i < s->used; i++) {
		const struct space_block *b = spaces_block(s, i);

		if (in_flight_at(b, sp, callsites) == CALLSITE_NONE)
			continue;
		bytes = map_put(held, b->stream);
		if (!bytes)
			return -ENOMEM;
		*bytes += b->block.size;
		if (*bytes > out->largest) {
			out->largest = *bytes;
			largest = b->stream;
		}
	}
	for (uint32_t i = 0; i < s->used; i++) {
		const struct space_block *b = spaces_block(s, i);
		uint32_t at = in_flight_at(b, sp, callsites);

		bytes = at == CALLSITE_NONE ? NULL : map_find(held, b->stream);
		if (!bytes || *bytes < out->largest / REQUESTS_ALIKE)
			continue;
		out->sum += b->block.size;
		if (b->stream != largest)
			others[at] += b->block.size;
	}
	for (uint32_t i = 0; i < s->used; i++) {
		const struct space_block *b = spaces_block(s, i);

		bytes = in_flight_at(b, sp, callsites) == CALLSITE_NONE ? NULL
									: map_find(held, b->stream);
		if (!bytes || *bytes < out->largest / REQUESTS_ALIKE)
			continue;
		out->alike++;
		*bytes = 0; /* each stream counts once */
	}
	out->others = others;
	return 0;
}

static int read_streams(const struct model *then, const struct space *sp,
    const struct callsites *callsites, struct scene_streams *out, uint64_t **others)
{
	struct map held = {0};
	int rc;

	*others = calloc(callsites->count + 1u, sizeof(**others));
	if (!*others)
		return -ENOMEM;
	rc = sum_streams(then->spaces, sp, callsites, &held, out, *others);
	map_free(&held);
	return rc;
}

static int set_slack(const struct model *then, const struct space *sp,
    const struct device_failure *f, const struct callsites *callsites, struct scene *scene,
    uint64_t **by_callsite)
{
	struct space_map map = {0};
	int rc;

	if (sp->kind == SPACE_POOL)
		return read_streams(then, sp, callsites, &scene->streams, by_callsite);
	/* The driver does not show how it divides its memory. */
	if (sp->kind != SPACE_TORCH)
		return 0;
	rc = space_map_make(then, sp, f->size, &map);
	if (!rc)
		rc = slack_of(&map, callsites, &scene->slack);
	if (!rc)
		rc = read_graphs(then, sp, callsites, &map, &scene->graphs, by_callsite);
	space_map_fini(&map);
	/* Free memory at the level below counts only where that level was asked. Less than the
	 * segment that it was asked for does not hold the block, either. */
	if (f->segment && f->free_known)
		scene->slack.below =
		    f->free < f->segment ? num_least(f->free, num_less(f->size, 1)) : f->free;
	return rc;
}

/* Say why the recording cannot judge the device, or NULL. The host's gap does not matter. */
static const char *gap_of(const struct device_report *d)
{
	uint64_t used = d->total - d->free;

	if (!d->free_known || d->free > d->total || d->ledger.unaccounted <= 0 ||
	    (uint64_t)d->ledger.unaccounted <= used / UNACCOUNTED_PART)
		return NULL;
	return d->others_known
		   ? "most of the device's memory in use is explained by no event"
		   : "most of the device's memory in use is explained by no event of this "
		     "process, and what others held was not seen";
}

/* Return how much more of the device others hold than when this process came to it. */
static uint64_t others_grown(
    const struct model *then, const struct space *sp, const struct device_report *d)
{
	const struct space *cuda = spaces_of(then->spaces, SPACE_CUDA, sp->device);

	if (!cuda || !d->others_known)
		return 0;
	if (cuda->first_context.known && cuda->first_context.others_known)
		return num_less(d->others, cuda->first_context.others);
	for (uint32_t i = 0; i < cuda->sample_count; i++)
		if (cuda->samples[i].others_known)
			return num_less(d->others, cuda->samples[i].others);
	return 0;
}

/* Return usage in the measure of the limit that refused. */
static uint64_t usage_of(const struct device_report *d)
{
	if (d->capped)
		return d->segment_bytes;
	return d->free_known && d->total > d->free ? d->total - d->free : d->explained;
}

/* Drop the host's answer, but keep what was recorded. */
static void drop_host(
    struct verdict_result *r, const struct feed *feed, const struct device_failure *f)
{
	const struct device_report *d = r->devices.first;

	r->failure = (struct failure_view){.kind = FAILURE_CUDA_OOM,
	    .pid = r->failure.pid,
	    .time_ns = f->time_ns,
	    .requested_bytes = f->size,
	    .limit = d->ledger.limit,
	    .limit_bytes = d->ledger.limit_bytes,
	    .usage_bytes = usage_of(d),
	    .stack = stack_view_of(feed, f->stack)};
	r->verdict = (struct verdict){.cause = CAUSE_UNKNOWN};
	r->ranking.count = r->what_ifs.count = 0;
}

/* Read the call sites of the space that refused, and the requests that worked there. */
static int read_moment(struct verdict_result *r, struct feed feed, const struct model *then,
    const struct space *sp, const struct failure *refused, struct err *err)
{
	int rc;

	callsites_free(r->callsites);
	r->callsites = NULL;
	rc = callsites_refused(sp->model, refused, &r->callsites, err);
	if (!rc)
		rc = open_call_read(feed, r->callsites, err);
	return rc ? rc : flow_read_space(r, feed, then, sp, err);
}

enum { TRY_EXPANDABLE, TRY_SPLIT, TRY_CANDIDATES };
#define TRIES (TRY_CANDIDATES + CANDIDATES_MAX)

struct tries {
	struct torch_change changes[TRIES];
	struct torch_outcome outcomes[TRIES];
	struct device_rewrite rewrites[CANDIDATES_MAX]; /* by candidate */
	size_t at[CANDIDATES_MAX]; /* index in changes; 0: not tried */
	size_t count;
};

/* Return a limit that keeps blocks as large as the refused one whole, and splits smaller ones. */
static uint64_t split_mib(uint64_t request)
{
	uint64_t mib = LEAST_SPLIT_MIB;

	while (mib < MOST_SPLIT_MIB && mib * 2 * CACHING_MIB <= request)
		mib *= 2;
	return mib;
}

static int add_setting(struct verdict_result *r, enum device_setting_kind kind, const char *change,
    const struct torch_outcome *o)
{
	struct device_report *d = r->devices.first;
	const char *copy = arena_copy(&r->arena, change, strlen(change));

	if (!copy)
		return -ENOMEM;
	d->settings[d->setting_count++] = (struct device_setting){kind, copy, o->fits, o->headroom};
	return 0;
}

/* True if the finding can be tried: its claims rewrite something, and it claims no holes. */
static bool can_be_tried(const struct finding *f)
{
	return f->strength >= RANK_STRENGTH_MIN && !f->coalesced && !f->slack_bytes &&
	       (f->claim_count || f->alone || f->request_bytes);
}

static int set_candidates(
    const struct verdict_result *r, const struct caching_settings *as, struct tries *t)
{
	for (size_t i = 0; i < r->ranking.count; i++) {
		const struct finding *f = &r->ranking.list[i].finding;
		struct device_rewrite *w = &t->rewrites[i];

		if (!can_be_tried(f))
			continue;
		if (device_rewrite_init(w, r->callsites, as))
			return -ENOMEM;
		for (uint32_t k = 0; k < f->claim_count; k++)
			device_rewrite_rule(
			    w, f->claims[k].callsite, f->claims[k].rule, f->claims[k].value);
		w->failed.time_ns = r->failure.time_ns;
		w->failed.less = f->request_bytes;
		t->at[i] = t->count++;
		t->changes[t->at[i]].given_back = f->alone ? f->other_bytes : 0;
		device_rewrite_change(w, &t->changes[t->at[i]]);
	}
	return 0;
}

/* Judge the trial. A refusal that PyTorch did not record must fit into the headroom. */
static struct candidate_trial trial_of(
    const struct device_report *d, const struct finding *f, const struct torch_outcome *o)
{
	struct candidate_trial t = {.made = true, .fits = o->fits, .headroom = o->headroom};

	if (d->unsaid && f->request_bytes < d->segment)
		t.headroom -= (int64_t)(d->segment - f->request_bytes);
	t.fits = t.fits && t.headroom >= 0;
	return t;
}

static void take_outcomes(
    const struct device_report *d, struct ranking *ranking, const struct tries *t, bool expandable)
{
	for (size_t i = 0; i < ranking->count; i++) {
		struct candidate *c = &ranking->list[i];
		const struct torch_outcome *o = &t->outcomes[t->at[i]];

		if (t->at[i])
			c->trial = trial_of(d, &c->finding, o);
		if (!c->finding.coalesced || expandable)
			continue;
		c->trial = trial_of(d, &c->finding, &t->outcomes[TRY_EXPANDABLE]);
		/* The sum of the holes is large enough. */
		if (!c->trial.fits) {
			c->trial.made = false;
			c->finding.strength *= NOT_CURED;
		}
	}
}

/* Replay PyTorch's requests on the device that refused, on a model of its allocator, without each
 * cause and with other settings: fill the candidates' trials, the device's settings and its match.
 * One pass answers for all. */
static int ask(struct verdict_result *r, struct feed feed, const struct caching_settings *as,
    struct tries *t, struct err *err)
{
	struct device_report *d = r->devices.first;
	struct caching_settings expandable = *as, split = *as;
	char text[64];
	int rc = set_candidates(r, as, t);

	expandable.expandable = true;
	split.max_split = split_mib(d->requested) * CACHING_MIB;
	t->changes[TRY_EXPANDABLE].settings = &expandable;
	t->changes[TRY_SPLIT].settings = &split;
	if (rc)
		return err_set(err, rc, "no memory for the replay");
	rc = torch_replay(feed, d->number, t->changes, t->count, t->outcomes, &d->match, err);
	if (rc || d->match.kind == TORCH_MATCH_NONE)
		return rc;
	if (d->match.kind == TORCH_MATCH_NOT) {
		notes_add(&r->notes,
		    "The model of PyTorch's allocator does not make the segments that were "
		    "recorded: what other settings would have done is not said, and what would "
		    "have fitted without each cause is a sum of bytes, without its allocator.");
		return 0;
	}
	take_outcomes(d, &r->ranking, t, as->expandable);
	if (as->expandable)
		return 0;
	rc = add_setting(
	    r, DEVICE_EXPANDABLE, "expandable_segments:True", &t->outcomes[TRY_EXPANDABLE]);
	snprintf(text, sizeof(text), "max_split_size_mb:%u", (unsigned)split_mib(d->requested));
	/* Expandable segments are split at any block size. */
	if (!rc && as->max_split != split.max_split)
		rc = add_setting(r, DEVICE_MAX_SPLIT, text, &t->outcomes[TRY_SPLIT]);
	return rc ? err_set(err, rc, "no memory for the what-ifs") : 0;
}

/* judge_scene()'s trial. If PyTorch refused nothing on that device, nothing is filled; if the model
 * does not reproduce the recording, only the match is. */
static int try_each(struct verdict_result *r, struct feed feed, struct err *err)
{
	const struct device_report *d = r->devices.first;
	struct tries t = {.count = TRY_CANDIDATES};
	struct caching_settings as;
	int rc;

	torch_replay_settings(feed, &as);
	/* The model cannot represent a limit that was set after the refused request. */
	if (!device_is_torch(d) || as.foreign_backend ||
	    (d->capped && d->peak_reserved > d->capped))
		return 0;
	rc = ask(r, feed, &as, &t, err);
	for (size_t i = 0; i < CANDIDATES_MAX; i++)
		device_rewrite_fini(&t.rewrites[i]);
	return rc;
}

static int judge(struct verdict_result *r, struct feed feed, const struct device_refusal *refusal,
    struct err *err)
{
	const struct device_failure *f = &refusal->failure;
	const struct model *then = refusal->then;
	struct device_report *d = r->devices.first;
	const char *name = r->model->spaces->list[f->space]->name;
	const struct alike *went = &r->model->spaces->list[f->space]->model->total.freed_stats;
	const struct space *sp = spaces_find(then->spaces, name);
	struct failure refused = {.time_ns = f->time_ns,
	    .size = f->size,
	    .stack = f->stack,
	    .thread = f->thread,
	    .result = f->result,
	    .count = f->count};
	struct scene scene = {.space = name,
	    .replaced = {went->count, went->bytes},
	    .held = &r->flow.held,
	    .end = {.failed = true, .refused = &refused},
	    .limit = {.bytes = r->failure.limit_bytes,
		.usage = r->failure.usage_bytes,
		.before = ledger_get(&d->ledger, LEDGER_BEFORE),
		.own = {.known = d->capped && d->free_known, .kept_back = d->free}}};
	uint64_t *by_callsite = NULL; /* the scene's, of graphs or streams */
	int rc;

	if (!sp)
		return 0;
	refused.serial = sp->model->run.serial;
	rc = read_moment(r, feed, then, sp, &refused, err);
	if (rc)
		return rc;
	scene.model = sp->model;
	scene.callsites = r->callsites;
	rc = set_slack(then, sp, f, r->callsites, &scene, &by_callsite);
	if (rc) {
		free(by_callsite);
		return err_set(err, rc, "no memory for the device's map");
	}
	scene.slack.bytes = num_less(scene.slack.bytes, d->hidden_bytes);
	/* What PyTorch's own limit leaves is free, too, but less than the segment that it wanted.
	 */
	if (scene.limit.own.known && scene.slack.known && f->size)
		scene.slack.below =
		    num_least(num_less(scene.limit.bytes, scene.limit.usage), f->size - 1);
	scene.others = (struct scene_others){.known = d->others_known || d->others,
	    .bytes = d->others,
	    .grown = others_grown(then, sp, d)};
	rc = judge_scene(r, &scene, try_each, feed, err);
	free(by_callsite);
	if (rc)
		return rc;
	r->coverage.gap = gap_of(d);
	decide(r, true,
	    r->coverage.gap && !r->tree.watched
		? "Run it under `whyoom run`, which asks what other "
		  "processes hold."
		: NULL);
	return waited_read(r, feed, &refused, err);
}

/* Evidence and summary of a refusal that no cause explains. */
static void evidence(struct verdict *v, const struct device_report *d)
{
	v->evidence_count = 0;
	decide_fact(v, FACT_REFUSED, (double)d->requested);
	if (d->segment)
		decide_fact(v, FACT_REFUSED_SEGMENT, (double)d->segment);
	if (d->free_known)
		decide_fact(v, FACT_DEVICE_FREE, (double)d->free);
	if (d->torch) {
		if (d->reserved_known)
			decide_fact(v, FACT_TORCH_RESERVED, (double)d->reserved);
		decide_fact(v, FACT_TORCH_LIVE, (double)d->live_bytes);
		decide_fact(v, FACT_TORCH_HOLES, (double)d->hole_bytes);
		decide_fact(v, FACT_TORCH_LARGEST, (double)d->largest_hole);
	}
	if (d->free_known && d->unattributed > 0)
		decide_fact(v, FACT_UNEXPLAINED, (double)d->unattributed);
}

static const char *summary(struct verdict_result *r, const struct device_report *d)
{
	struct str s = {0};
	struct fmt a, b, c;
	const char *text;

	if (d->torch && device_is_torch(d)) {
		str_printf(&s,
		    "PyTorch found no room for a block of %s on %s: of %s that it has "
		    "reserved %s are live, ",
		    fmt_size_apart(&a, d->requested, d->largest_hole), d->device,
		    fmt_size(&b, d->reserved_known ? d->reserved : d->segment_bytes),
		    fmt_size(&c, d->live_bytes));
		if (d->largest_hole)
			str_printf(&s, "and the largest hole is %s.",
			    fmt_size_apart(&a, d->largest_hole, d->requested));
		else
			str_puts(&s, "and there is no hole.");
		if (d->segment && d->free_known)
			str_printf(&s,
			    " A new segment of %s did not fit into the %s that were free on the "
			    "device.",
			    fmt_size(&a, d->segment), fmt_size(&b, d->free));
		else if (!d->segment)
			str_puts(&s, " The driver was not asked: a limit of PyTorch's own refused "
				     "it.");
	} else {
		str_printf(&s, "%s refused %s", d->space, fmt_size(&a, d->requested));
		if (d->api)
			str_printf(&s, " (%s)", d->api);
		if (d->free_known)
			str_printf(&s, ": %s of the device's %s were free", fmt_size(&b, d->free),
			    fmt_size(&c, d->total));
		str_puts(&s, ".");
	}
	if (coverage_mostly_before(r)) {
		str_putc(&s, ' ');
		ending_before(&s, r);
		str_puts(&s, "; attach earlier, or start it with `whyoom run`.");
	}
	text = s.failed ? NULL : arena_copy(&r->arena, str_text(&s), s.length);
	str_free(&s);
	return text;
}

int device_cause(struct verdict_result *r, struct feed feed, const struct device_refusal *refusal,
    struct err *err)
{
	struct verdict *v = &r->verdict;
	int rc;

	drop_host(r, &feed, &refusal->failure);
	rc = judge(r, feed, refusal, err);
	if (!rc && device_account(r, r->devices.first, refusal->then))
		rc = err_set(err, -ENOMEM, "no memory for the device's map");
	if (rc)
		return rc;
	r->ledger = r->devices.first->ledger;
	decide_what_ifs(r);
	if (v->cause == CAUSE_UNKNOWN) {
		evidence(v, r->devices.first);
		v->summary = summary(r, r->devices.first);
	} else {
		fixes_for(r);
		v->summary = words_summary(r);
	}
	return v->summary ? 0 : -ENOMEM;
}
