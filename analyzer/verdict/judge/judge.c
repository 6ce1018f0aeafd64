#include "verdict/judge/judge.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/num.h"
#include "util/tuned.h"
#include "verdict/framework/framework_roles.h"
#include "verdict/judge/counterfactual.h"
#include "verdict/judge/rank.h"
#include "verdict/ledger/host_slack.h"

TUNED(uint64_t, UNACCOUNTED_PART, 4,
    "more than a quarter of the limit decides what else fits; less is the sample's age");
TUNED(double, EXCHANGED, 2.0,
    "as much freed of before as came since is an exchange; up to half is other work's");
TUNED(double, STACKS_PART, 8.0,
    "threads' stacks may be some times what their requests hold, and still be no cause");

/* Drop free bytes in the interpreter's arenas: no call site asked for them. */
static void leave_out_unused(const struct callsites *callsites, struct finding *f)
{
	for (uint32_t i = 0; i < f->claim_count; i++) {
		const struct callsite *p = &callsites->list[f->claims[i].callsite];
		uint64_t unused = p->facts.live_bytes ? (uint64_t)((double)f->claims[i].bytes *
								   (double)callsite_unused(p) /
								   (double)p->facts.live_bytes)
						      : 0;

		f->claims[i].bytes -= unused;
		f->bytes -= unused;
	}
}

/* Weigh a claim against what the model does not hold: everything else in a shared file system, or
 * threads' stacks. */
static void weigh_against_others(const struct scene *scene, struct finding *f)
{
	uint64_t claimed = f->bytes + f->request_bytes + f->other_bytes;

	/* A steady need claims only what is wanting. */
	if (!scene->end.failed || f->steady)
		return;
	if (scene->work)
		f->strength *=
		    dominance((double)claimed, (double)num_less(scene->limit.usage, claimed));
	else if (scene->limit.stacks)
		f->strength *= fmin(1, (double)claimed * STACKS_PART / (double)scene->limit.stacks);
}

/* After an attach, blocks may come only to take the place of those from before, as in a cache. */
static void weigh_against_exchange(const struct scene *scene, struct finding *f)
{
	double freed = (double)base_freed(scene->model, scene->callsites->moment_ns);

	if (f->blame != CALLSITE_NONE && !f->steady && f->bytes && freed > 0)
		f->strength *= fmax(0, fmin(1, EXCHANGED * (1 - freed / (double)f->bytes)));
}

static void detect(const struct scene *scene, struct ranking *out)
{
	out->count = 0;
	for (enum cause cause = CAUSE_UNKNOWN + 1; cause < CAUSE_COUNT; cause++) {
		struct candidate *c = &out->list[out->count];

		memset(c, 0, sizeof(*c));
		if (detectors[cause](scene, &c->finding) != 0)
			continue;
		c->finding.cause = cause;
		leave_out_unused(scene->callsites, &c->finding);
		weigh_against_others(scene, &c->finding);
		weigh_against_exchange(scene, &c->finding);
		out->count++;
	}
}

/* Set the begin of the growth that each finding explains, not before since_ns. A finding without a
 * begin takes the first block of the earliest finding whose shape is there. */
static void growth_starts(struct ranking *out, const struct callsites *callsites, uint64_t since_ns)
{
	uint64_t start = callsites->moment_ns;

	for (size_t i = 0; i < out->count; i++) {
		const struct finding *f = &out->list[i].finding;
		const struct callsite *p =
		    f->blame == CALLSITE_NONE ? NULL : &callsites->list[f->blame];

		/* A refused request has no earlier begin, and imports come before any growth. */
		if (!f->start_ns && p && p->facts.step_count && !callsite_is_import(p) &&
		    f->strength >= RANK_STRENGTH_MIN && p->facts.first_ns < start)
			start = p->facts.first_ns;
	}
	for (size_t i = 0; i < out->count; i++) {
		struct finding *f = &out->list[i].finding;

		if (!f->start_ns)
			f->start_ns = start;
		f->start_ns = num_most(f->start_ns, since_ns);
	}
}

/* Set the free bytes of the host's allocator, at the moment and at the begin of the growth. */
static void set_slack(
    const struct ranking *out, const struct scene *scene, struct replay_result *replays)
{
	for (size_t i = 0; i < out->count; i++) {
		uint64_t then = host_slack_at(scene->model, out->list[i].finding.start_ns);

		/* Space that an allocator reserves to grow into exists from its first block: it is
		 * no growth, and does not lie between blocks. */
		replays[i].slack = num_less(scene->slack.bytes, scene->slack.reserved);
		replays[i].slack_start = num_least(then, replays[i].slack);
	}
}

/* Return the bytes that the ledger cannot tell, if they are much of the limit: they may be
 * anybody's growth, and no candidate removes them. */
static uint64_t not_told(const struct verdict_result *r, const struct scene *scene)
{
	uint64_t unaccounted = r->ledger.unaccounted > 0 ? (uint64_t)r->ledger.unaccounted : 0;

	return unaccounted > scene->limit.bytes / UNACCOUNTED_PART ? unaccounted : 0;
}

int judge_scene(struct verdict_result *r, const struct scene *scene,
    int (*ask)(struct verdict_result *r, struct feed feed, struct err *err), struct feed feed,
    struct err *err)
{
	struct ranking *out = &r->ranking;
	struct replay_result replays[CANDIDATES_MAX];
	struct rank_input in = {.limit_bytes = scene->limit.bytes,
	    .usage_bytes = scene->limit.usage,
	    .request_bytes = scene->end.failed ? r->failure.requested_bytes : 0,
	    .others_grown = scene->others.grown + scene->others.left + not_told(r, scene),
	    .failed = scene->end.failed};
	enum role *roles = framework_roles(r, scene->model, scene->callsites);
	struct scene full = *scene;
	int rc = 0;

	if (!roles)
		return -ENOMEM;
	full.roles = roles;
	detect(&full, out);
	free(roles);
	growth_starts(out, scene->callsites, scene->end.since_ns);
	memset(replays, 0, sizeof(replays));
	if (scene->end.failed)
		rc = counterfactual_replay(feed, scene, out->list, out->count, replays, err);
	else
		for (size_t i = 0; i < out->count; i++)
			replays[i].live = scene->model->peak.bytes;
	if (!rc && ask)
		rc = ask(r, feed, err);
	if (rc)
		return rc;
	if (!scene->space && scene->slack.known)
		set_slack(out, scene, replays);
	rank_candidates(&in, out->list, replays, out->count);
	return 0;
}
