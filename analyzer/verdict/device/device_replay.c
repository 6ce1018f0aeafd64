/* device_replay.c - see device_replay.h. One pass answers for all settings and candidates. */
#include "verdict/device/device_replay.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/tuned.h"
#include "verdict/device/device_rewrite.h"
#include "verdict/judge/rank.h"

TUNED(uint64_t, LEAST_SPLIT_MIB, 32,
    "PyTorch refuses a max_split_size_mb of 20 and less; below 32 it hardly caches large blocks");
TUNED(uint64_t, MOST_SPLIT_MIB, 512,
    "larger blocks than that are few, and keeping them whole changes little");
TUNED(double, NOT_CURED, 0.8,
    "the holes in one piece would have held the request, but no setting would have joined them");

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

static int add_setting(struct device_report *d, struct arena *words, enum device_setting_kind kind,
    const char *change, const struct torch_outcome *o)
{
	struct device_setting *s = &d->settings[d->setting_count];

	s->kind = kind;
	s->change = arena_copy(words, change, strlen(change));
	s->fits = o->fits;
	s->headroom = o->headroom;
	if (!s->change)
		return -ENOMEM;
	d->setting_count++;
	return 0;
}

/* True if the finding can be tried: its claims rewrite something. */
static bool can_be_tried(const struct finding *f)
{
	return f->strength >= RANK_STRENGTH_MIN && !f->coalesced &&
	       (f->claim_count || f->alone || f->request_bytes);
}

static int set_candidates(const struct device_replay *r, const struct ranking *ranking,
    const struct caching_settings *as, struct tries *t)
{
	for (size_t i = 0; i < ranking->count; i++) {
		const struct finding *f = &ranking->list[i].finding;
		struct device_rewrite *w = &t->rewrites[i];

		if (!can_be_tried(f))
			continue;
		if (device_rewrite_init(w, r->callsites, as))
			return -ENOMEM;
		for (uint32_t k = 0; k < f->claim_count; k++)
			device_rewrite_rule(
			    w, f->claims[k].callsite, f->claims[k].rule, f->claims[k].value);
		w->failed.time_ns = r->failed_ns;
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

static void note_mismatch(struct notes *notes)
{
	notes_add(notes,
	    "The model of PyTorch's allocator does not make the segments that were "
	    "recorded: what other settings would have done is not said, and what would "
	    "have fitted without each cause is a sum of bytes, without its allocator.");
}

static int ask(struct device_replay *r, struct feed feed, struct ranking *ranking,
    const struct caching_settings *as, struct tries *t, struct err *err)
{
	struct device_report *d = r->device;
	struct caching_settings expandable = *as, split = *as;
	char text[64];
	int rc = set_candidates(r, ranking, as, t);

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
		note_mismatch(r->notes);
		return 0;
	}
	take_outcomes(d, ranking, t, as->expandable);
	if (!as->expandable)
		rc = add_setting(d, r->words, DEVICE_EXPANDABLE, "expandable_segments:True",
		    &t->outcomes[TRY_EXPANDABLE]);
	snprintf(text, sizeof(text), "max_split_size_mb:%u", (unsigned)split_mib(d->requested));
	/* Expandable segments are split at any block size. */
	if (!rc && !as->expandable && as->max_split != split.max_split)
		rc = add_setting(d, r->words, DEVICE_MAX_SPLIT, text, &t->outcomes[TRY_SPLIT]);
	return rc ? err_set(err, rc, "no memory for the what-ifs") : 0;
}

int device_replay(void *self, struct feed feed, struct ranking *ranking, struct err *err)
{
	struct device_replay *r = self;
	const struct device_report *d = r->device;
	struct tries t = {.count = TRY_CANDIDATES};
	struct caching_settings as;
	int rc;

	torch_replay_settings(feed, &as);
	/* The model cannot represent a limit that was set after the refused request. */
	if (!d->failed || strncmp(d->space, "torch", 5) != 0 || as.foreign_backend ||
	    (d->capped && d->peak_reserved > d->capped))
		return 0;
	rc = ask(r, feed, ranking, &as, &t, err);
	for (size_t i = 0; i < CANDIDATES_MAX; i++)
		device_rewrite_fini(&t.rewrites[i]);
	return rc;
}
