/*
 * counterfactual.c - see counterfactual.h. No rule needs memory for each block: caps work on a
 * block's size or a call site's sum, and missing releases are due in bins of time.
 */
#include "verdict/judge/counterfactual.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/space/space.h"
#include "util/num.h"
#include "util/progress.h"

#define BINS 4096u

struct rewrite {
	enum rule rule;
	uint64_t value;
	uint64_t live, without; /* bytes of the call site: recorded; without the cause */
	/* RULE_EXPIRE only. */
	uint64_t *due; /* bytes due for release, by bin of time */
	uint64_t width, done; /* width of a bin in ns; bins before `done` are released */
	int64_t *removed; /* the candidate's */
};

struct per_candidate {
	struct rewrite *rewrites; /* by claim */
	uint32_t *of_callsite; /* by call site: its claim; CALLSITE_NONE: none */
	uint32_t count;
	int64_t removed;
	uint64_t start_ns, moment_ns;
	uint64_t peak; /* peak of live bytes without it, since the start */
	uint32_t marks; /* marks passed */
	uint64_t next_ns; /* its start, or the next mark */
	bool started;
};

struct replay {
	const struct callsites *callsites;
	struct per_candidate each[CANDIDATES_MAX];
	size_t count;
	const struct model *m; /* with the rewritten blocks; NULL: not yet */
	const struct spaces *spaces; /* of the model; NULL: the host's */
	uint32_t device;
	uint64_t unused; /* part of the live bytes: free in the interpreter's arenas */
	struct replay_result *out;
};

static void expire(struct rewrite *w, uint64_t time_ns)
{
	uint64_t now = time_ns / w->width;

	for (; w->done < now && w->done < BINS; w->done++) {
		uint64_t due = w->due[w->done] < w->without ? w->due[w->done] : w->without;

		w->without -= due;
		*w->removed += (int64_t)due;
	}
}

static void update(struct rewrite *w, uint64_t live, uint64_t without)
{
	*w->removed += (int64_t)(live - w->live) - (int64_t)(without - w->without);
	w->live = live;
	w->without = without;
}

/* Return these blocks' bytes if each is at most as large as the rule allows. */
static uint64_t capped(const struct rewrite *w, struct alike blocks)
{
	if (blocks.size <= w->value)
		return blocks.bytes;
	return (uint64_t)((unsigned __int128)blocks.bytes * w->value / blocks.size);
}

static void rewrite_acquire(struct rewrite *w, struct alike blocks, uint64_t time_ns)
{
	uint64_t without = w->without, size = blocks.bytes;

	switch (w->rule) {
	case RULE_CAP_SIZE:
	case RULE_STREAM:
		without += capped(w, blocks);
		break;
	case RULE_KEEP_BYTES:
		without = w->live + size < w->value ? w->live + size : w->value;
		break;
	case RULE_EXPIRE:
		expire(w, time_ns);
		without = w->without + size;
		if ((time_ns + w->value) / w->width < BINS)
			w->due[(time_ns + w->value) / w->width] += size;
		break;
	}
	update(w, w->live + size, without);
}

static void rewrite_release(
    struct rewrite *w, struct alike blocks, uint64_t birth_ns, uint64_t time_ns)
{
	uint64_t size = blocks.bytes;
	uint64_t live = w->live > size ? w->live - size : 0, without = w->without, part, bin;

	switch (w->rule) {
	case RULE_CAP_SIZE:
	case RULE_STREAM:
		part = capped(w, blocks);
		without -= part < without ? part : without;
		break;
	case RULE_KEEP_BYTES:
		without = live < w->value ? live : w->value;
		break;
	case RULE_EXPIRE:
		expire(w, time_ns);
		without = w->without;
		bin = (birth_ns + w->value) / w->width;
		/* The release is due later, or beyond the last bin, but happens now. */
		if (bin < BINS && (bin < w->done || w->due[bin] < size))
			break;
		if (bin < BINS)
			w->due[bin] -= size;
		without -= size < without ? size : without;
		break;
	}
	update(w, live, without);
}

static struct rewrite *rewrite_of(const struct replay *r, size_t candidate, uint32_t callsite)
{
	const struct per_candidate *c = &r->each[candidate];
	uint32_t claim = callsite == CALLSITE_NONE ? CALLSITE_NONE : c->of_callsite[callsite];

	return claim == CALLSITE_NONE ? NULL : &c->rewrites[claim];
}

/* Return the free bytes of an allocator inside a device: the driver's less the live bytes. */
static uint64_t slack_of(const struct replay *r, uint64_t live)
{
	uint64_t held = r->spaces ? spaces_explained(r->spaces, r->device) : 0;

	return held > live ? held - live : 0;
}

/* Return the live bytes without the free bytes in arenas, which are the allocator's slack. */
static uint64_t live_of(const struct replay *r)
{
	return r->m->blocks.bytes + r->m->maps.bytes - r->unused;
}

/* Return the used part of a block of that call site. */
static uint64_t used_of(
    const struct replay *r, uint32_t callsite, enum stack_stats_kind kind, uint64_t size)
{
	const struct callsite *p = callsite == CALLSITE_NONE ? NULL : &r->callsites->list[callsite];

	return p && p->arena_share.any && kind == STACK_STATS_MAP
		   ? size - (uint64_t)((double)size * p->arena_share.unused)
		   : size;
}

static uint64_t mark_ns(const struct per_candidate *c)
{
	uint64_t steps = TREND_MARKS - 1,
		 run = c->moment_ns > c->start_ns ? c->moment_ns - c->start_ns : 0;

	return c->start_ns + run / 2 + run / 2 * c->marks / steps;
}

/* Note the candidate's values at its start and marks up to that time. */
static void note_moments(struct replay *r, size_t i, uint64_t time_ns, uint64_t live)
{
	struct per_candidate *c = &r->each[i];

	if (!c->started && time_ns >= c->start_ns) {
		c->started = true;
		r->out[i].live_start = live;
		r->out[i].without_start = live - (uint64_t)c->removed;
		r->out[i].slack_start = slack_of(r, live);
		c->peak = r->out[i].without_start;
	}
	while (c->marks < TREND_MARKS && time_ns >= mark_ns(c))
		r->out[i].without_peaks[c->marks++] = c->peak;
	c->next_ns = !c->started ? c->start_ns : c->marks < TREND_MARKS ? mark_ns(c) : UINT64_MAX;
}

/* Call this before the event at time_ns is applied. */
static inline void pass(struct replay *r, size_t i, uint64_t time_ns, uint64_t live)
{
	if (time_ns >= r->each[i].next_ns)
		note_moments(r, i, time_ns, live);
}

static void acquired(
    void *arg, uint32_t stack, enum stack_stats_kind kind, struct alike blocks, uint64_t time_ns)
{
	struct replay *r = arg;
	uint32_t callsite = callsites_of_stack(r->callsites, kind, stack);
	uint64_t used = used_of(r, callsite, kind, blocks.bytes), live;

	if (used < blocks.bytes) {
		r->unused += blocks.bytes - used;
		blocks = ALIKE_ONE(used);
	}
	live = live_of(r);
	for (size_t i = 0; i < r->count; i++) {
		struct rewrite *w = rewrite_of(r, i, callsite);
		uint64_t without;

		pass(r, i, time_ns, live - blocks.bytes);
		if (w)
			rewrite_acquire(w, blocks, time_ns);
		without = live - (uint64_t)r->each[i].removed;
		if (without > r->each[i].peak && (int64_t)without >= 0)
			r->each[i].peak = without;
	}
}

static void released(void *arg, uint32_t stack, enum stack_stats_kind kind, struct alike blocks,
    uint64_t birth_ns, uint64_t time_ns)
{
	struct replay *r = arg;
	uint32_t callsite = callsites_of_stack(r->callsites, kind, stack);

	uint64_t used = used_of(r, callsite, kind, blocks.bytes);

	if (callsite == CALLSITE_NONE)
		return;
	if (used < blocks.bytes) {
		r->unused -= num_least(blocks.bytes - used, r->unused);
		blocks = ALIKE_ONE(used);
	}
	for (size_t i = 0; i < r->count; i++) {
		struct rewrite *w = rewrite_of(r, i, callsite);

		if (w)
			rewrite_release(w, blocks, birth_ns, time_ns);
	}
}

static int prepare(struct per_candidate *c, const struct candidate *candidate,
    const struct callsites *callsites, uint64_t moment_ns)
{
	const struct finding *f = &candidate->finding;

	c->rewrites = calloc(f->claim_count + 1u, sizeof(*c->rewrites));
	c->of_callsite = malloc((callsites->count + 1u) * sizeof(*c->of_callsite));
	if (!c->rewrites || !c->of_callsite)
		return -ENOMEM;
	memset(c->of_callsite, 0xff, (callsites->count + 1u) * sizeof(*c->of_callsite));
	c->count = f->claim_count;
	c->start_ns = f->start_ns;
	c->moment_ns = moment_ns;
	for (uint32_t i = 0; i < f->claim_count; i++) {
		struct rewrite *w = &c->rewrites[i];
		uint32_t *of = &c->of_callsite[f->claims[i].callsite];

		w->rule = f->claims[i].rule;
		w->value = f->claims[i].value;
		w->removed = &c->removed;
		/* Of two bounds on a call site the lower one counts. */
		if (*of == CALLSITE_NONE || w->rule != RULE_KEEP_BYTES ||
		    c->rewrites[*of].rule != RULE_KEEP_BYTES || w->value < c->rewrites[*of].value)
			*of = i;
		if (w->rule != RULE_EXPIRE)
			continue;
		w->width = moment_ns / (BINS - 1) + 1;
		w->due = calloc(BINS, sizeof(*w->due));
		if (!w->due)
			return -ENOMEM;
	}
	return 0;
}

static void finish(struct replay *r, uint64_t moment_ns)
{
	uint64_t live = r->m ? live_of(r) : 0;

	for (size_t i = 0; i < r->count; i++) {
		pass(r, i, UINT64_MAX, live);
		for (uint32_t w = 0; w < r->each[i].count; w++)
			if (r->each[i].rewrites[w].rule == RULE_EXPIRE)
				expire(&r->each[i].rewrites[w], moment_ns);
		r->out[i].live = live;
		r->out[i].without = live - (uint64_t)r->each[i].removed;
		r->out[i].slack = slack_of(r, live);
	}
}

/* Observe the host's blocks, or the space's once it exists. */
static void listen(struct replay *r, struct model *m, const char *space)
{
	struct space *sp = space ? spaces_find(m->spaces, space) : NULL;
	struct model *of = space ? (sp ? sp->model : NULL) : m;

	if (!of)
		return;
	of->options.observer = (struct observer){r, acquired, released};
	r->m = of;
	if (sp) {
		r->spaces = m->spaces;
		r->device = sp->device;
	}
}

int counterfactual_replay(struct feed feed, const struct scene *scene,
    const struct candidate *candidates, size_t count, struct replay_result *out, struct err *err)
{
	const struct callsites *callsites = scene->callsites;
	const char *space = scene->space;
	uint64_t moment_ns = callsites->moment_ns;
	struct replay r = {.callsites = callsites, .count = count, .out = out};
	struct model *m = NULL;
	struct event e;
	int rc;

	memset(out, 0, count * sizeof(*out));
	for (size_t i = 0; i < count; i++) {
		rc = prepare(&r.each[i], &candidates[i], callsites, moment_ns);
		if (rc) {
			err_set(err, rc, "no memory for the replay");
			goto out;
		}
	}
	rc = model_new(feed, &m, err);
	if (rc)
		goto out;
	m->options.sums = !space;
	m->options.files_charged = callsites->files_charged;
	listen(&r, m, space);
	feed_progress(&feed, "replaying without each cause");
	rc = space ? feed_rewind_spaces(&feed, err) : feed.rewind(feed.self, err);
	while (rc == 0 && (rc = feed.next(feed.self, &e, err)) == 1) {
		rc = 0;
		/* Later releases do not matter for the moment. */
		if (e.time_ns > moment_ns)
			break;
		rc = model_apply(m, &e, err);
		if (rc || (e.kind == EV_FAILED && e.time_ns == moment_ns))
			break;
		feed_passed(&feed, m->run.events);
		if (r.m)
			continue;
		/* This block may have created the space. */
		listen(&r, m, space);
		if (r.m && e.kind == EV_SPACE_ALLOC && r.m->blocks.bytes)
			acquired(
			    &r, e.stack, STACK_STATS_HEAP, ALIKE_ONE(r.m->blocks.bytes), e.time_ns);
	}
	progress_end();
	if (rc < 0)
		goto out;
	finish(&r, moment_ns);
	rc = 0;
out:
	for (size_t i = 0; i < count; i++) {
		for (uint32_t w = 0; r.each[i].rewrites && w < r.each[i].count; w++)
			free(r.each[i].rewrites[w].due);
		free(r.each[i].rewrites);
		free(r.each[i].of_callsite);
	}
	model_free(m);
	return rc;
}
