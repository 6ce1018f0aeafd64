/*
 * torch_replay.c - replays the record. The first pass tells the streams apart; in the second pass
 * the plain run of the model follows the record, and each change follows both. See torch_replay.h.
 */
#include "model/torch/torch_replay.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "model/torch/torch_parts.h"
#include "util/progress.h"

#define WITHIN 0.01

struct replay {
	struct torch_record record;
	struct torch_streams streams;
	struct torch_trial plain;
	struct torch_trial *trials;
	size_t count;
	struct torch_match match;
	/* of the last granted request of the large pools; of the small ones */
	uint32_t last_segment[2];
	uint64_t last_ns;
	bool differs;
};

const char *torch_replay_conf(struct feed feed)
{
	const char *conf = feed.info(feed.self, "env.PYTORCH_ALLOC_CONF");

	return conf ? conf : feed.info(feed.self, "env.PYTORCH_CUDA_ALLOC_CONF");
}

bool torch_replay_settings(struct feed feed, struct caching_settings *out)
{
	caching_settings_init(out);
	return caching_settings_parse(out, torch_replay_conf(feed), NULL);
}

/* --- compare the plain run with the record --- */

static void note_difference(
    struct replay *r, const char *what, uint64_t time_ns, uint64_t recorded, uint64_t modelled)
{
	if (r->differs)
		return;
	r->differs = true;
	r->match.first.what = what;
	r->match.first.time_ns = time_ns;
	r->match.first.request = r->record.requests;
	r->match.first.recorded = recorded;
	r->match.first.modelled = modelled;
}

/* Compare, before the next step, with PyTorch's value after the last one. */
static void compare_reserved(struct replay *r, bool known, uint64_t reserved, uint64_t time_ns)
{
	struct caching_stats s;
	double off;

	if (!known)
		return;
	caching_allocator_stats(r->plain.allocator, &s);
	r->match.compared++;
	if (s.reserved == reserved)
		return;
	note_difference(r, "reserved", time_ns, reserved, s.reserved);
	off = fabs((double)s.reserved - (double)reserved);
	off = reserved ? off / (double)reserved : 1;
	if (off > r->match.deviation)
		r->match.deviation = off;
}

/* Note segments that PyTorch took for this request and the model did not. */
static void compare_segments(struct replay *r, const struct torch_step *step)
{
	const struct torch_segment *segments = r->record.segments.items;

	for (size_t i = 0; i < r->record.calls.count; i++) {
		const struct torch_call *c = &r->record.calls.items[i];
		bool torch = c->segment != TORCH_NO_SEGMENT && segments[c->segment].torch;

		if (!torch || (c->kind != TORCH_TAKE && c->kind != TORCH_MAP))
			continue;
		r->match.segments++;
		if (!c->used)
			note_difference(r, "segment", step->block.time_ns, c->size, 0);
	}
	if (r->plain.differs)
		note_difference(
		    r, "segment", step->block.time_ns, r->plain.recorded, r->plain.modelled);
}

/* --- an emptied cache: the record has only its releases --- */

/* Return the bytes given back before the step's first request to the device. */
static uint64_t given_before(const struct replay *r, const struct torch_step *step)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < r->record.calls.count; i++) {
		const struct torch_call *c = &r->record.calls.items[i];

		if (c->kind == TORCH_GIVE || c->kind == TORCH_UNMAP)
			sum += c->size;
		else if (c->thread == step->block.thread)
			break;
	}
	return sum;
}

enum emptied {
	NOT_EMPTIED, /* or the allocator did, for this request's memory */
	PERHAPS_EMPTIED, /* all is gone; the allocator or the program did it */
	EMPTIED, /* the program emptied the cache */
};

static enum emptied was_emptied(
    const struct replay *r, const struct torch_step *step, struct caching_where where)
{
	const struct torch_trial *p = &r->plain;
	uint64_t given = given_before(r, step);
	struct caching_stats s;
	bool limited;

	if (!given)
		return NOT_EMPTIED;
	if (step->kind == TORCH_RELEASE ||
	    caching_allocator_would_hit(p->allocator, where, step->asked))
		return EMPTIED;
	caching_allocator_stats(p->allocator, &s);
	limited = p->allowed != UINT64_MAX &&
		  s.reserved + caching_segment_size(&p->settings, step->asked) > p->allowed;
	if (given == s.idle)
		return limited ? PERHAPS_EMPTIED : EMPTIED;
	/* Garbage collection and blocks that may not be split give back a part. */
	return limited || p->settings.gc_threshold > 0 || p->settings.max_split != UINT64_MAX
		   ? NOT_EMPTIED
		   : EMPTIED;
}

/* Retire private pools that give back memory: no graph uses them any more. */
static void retire_pools(struct replay *r)
{
	for (size_t i = 0; i < r->record.calls.count; i++) {
		const struct torch_call *c = &r->record.calls.items[i];
		struct caching_where where;

		if (c->kind != TORCH_GIVE)
			continue;
		where = torch_streams_where(&r->streams, c->segment);
		if (!where.pool)
			continue;
		torch_trial_retire(&r->plain, where.pool);
		for (size_t k = 0; k < r->count; k++)
			torch_trial_retire(&r->trials[k], where.pool);
	}
}

/* --- the pass --- */

/* Find a request's stream. A refused one has no block to show it: assume the stream of the last
 * request of its pools, unless that stream could have served it. */
static struct caching_where where_of(struct replay *r, const struct torch_step *step)
{
	uint32_t *last = &r->last_segment[step->block.size <= CACHING_SMALL];
	struct caching_where where;

	if (step->kind == TORCH_REQUEST && step->segment != TORCH_NO_SEGMENT)
		*last = step->segment;
	where = torch_streams_where(&r->streams, *last);
	if (!step->block.refused ||
	    !caching_allocator_would_hit(r->plain.allocator, where, step->block.size))
		return where;
	for (uint32_t stream = 0; stream < r->streams.count; stream++) {
		where = (struct caching_where){.stream = stream};
		if (!caching_allocator_would_hit(r->plain.allocator, where, step->block.size))
			break;
	}
	return where;
}

static int take_step(struct replay *r, struct torch_step *step)
{
	struct caching_where where = where_of(r, step);
	struct caching_stats s;
	enum emptied emptied;
	int rc;

	r->last_ns = step->block.time_ns;
	if (step->kind == TORCH_REQUEST && step->block.refused)
		r->match.refused = step->block.serial;
	compare_reserved(r, step->reserved_known, step->reserved, step->block.time_ns);
	torch_record_ask(&r->record, &r->plain.settings, step);
	retire_pools(r);
	emptied = was_emptied(r, step, where);
	rc = torch_trial_step(&r->plain, step, where, emptied != NOT_EMPTIED, 0);
	if (rc)
		return rc;
	compare_segments(r, step);
	caching_allocator_stats(r->plain.allocator, &s);
	for (size_t i = 0; i < r->count && !rc; i++)
		rc = torch_trial_step(&r->trials[i], step, where, emptied == EMPTIED,
		    step->block.refused ? 0 : s.reserved);
	return rc;
}

static int walk(struct replay *r, struct err *err)
{
	struct feed *feed = &r->record.feed;
	struct torch_step step;
	struct event e;
	uint64_t events = 0;
	int rc = feed_rewind_spaces(feed, err), more = 0;

	feed_progress(feed, "asking PyTorch's allocator again");
	while (!rc && (more = feed->next(feed->self, &e, err)) == 1) {
		rc = torch_record_event(&r->record, &e, &step);
		if (!rc && step.kind != TORCH_NOTHING)
			rc = take_step(r, &step);
		if (rc)
			err_set(err, rc, "no memory for PyTorch's blocks");
		feed_passed(feed, ++events);
	}
	progress_end();
	if (rc || more < 0)
		return rc ? rc : more;
	compare_reserved(r, r->record.reserved_known, r->record.reserved, r->last_ns);
	return 0;
}

static void judge_match(struct replay *r, const struct caching_settings *settings, bool understood)
{
	struct torch_match *m = &r->match;
	struct feed *feed = &r->record.feed;

	m->requests = r->record.requests;
	m->streams = r->streams.count;
	if (!m->requests)
		m->kind = TORCH_MATCH_NONE;
	else if (!r->differs)
		m->kind = TORCH_MATCH_IDENTICAL;
	else
		m->kind =
		    m->compared && m->deviation <= WITHIN ? TORCH_MATCH_WITHIN : TORCH_MATCH_NOT;
	if (feed->facts(feed->self)->budget)
		m->doubt = "small blocks are missing from some point on";
	else if (settings->foreign_backend)
		m->doubt = "another allocator than PyTorch's own";
	else if (!understood)
		m->doubt = "settings that are not known here";
}

static int run(struct replay *r, const struct caching_settings *settings,
    const struct torch_change *changes, size_t count, struct err *err)
{
	int rc = torch_trial_init(&r->plain, &r->record, &r->streams, settings, NULL);

	for (size_t i = 0; i < count && !rc; i++) {
		rc =
		    torch_trial_init(&r->trials[i], &r->record, &r->streams, settings, &changes[i]);
		r->count += !rc;
	}
	if (rc)
		return err_set(err, rc, "no memory for the replay");
	return walk(r, err);
}

int torch_replay(struct feed feed, uint32_t device, const struct torch_change *changes,
    size_t count, struct torch_outcome *outcomes, struct torch_match *match, struct err *err)
{
	struct replay r = {.last_segment = {TORCH_NO_SEGMENT, TORCH_NO_SEGMENT}};
	struct caching_settings settings;
	bool understood = torch_replay_settings(feed, &settings);
	int rc;

	torch_record_init(&r.record, feed, device);
	r.trials = calloc(count + 1, sizeof(*r.trials));
	rc = r.trials ? torch_streams_find(feed, device, &settings, &r.streams, err)
		      : err_set(err, -ENOMEM, "no memory for the replay");
	if (!rc)
		rc = run(&r, &settings, changes, count, err);
	for (size_t i = 0; i < r.count && !rc; i++) {
		rc = torch_trial_finish(&r.trials[i]);
		if (rc)
			err_set(err, rc, "no memory for PyTorch's blocks");
		outcomes[i] = r.trials[i].outcome;
	}
	if (!rc && match) {
		judge_match(&r, &settings, understood);
		*match = r.match;
	}
	for (size_t i = 0; i < r.count; i++)
		torch_trial_fini(&r.trials[i]);
	free(r.trials);
	torch_trial_fini(&r.plain);
	torch_streams_fini(&r.streams);
	torch_record_fini(&r.record);
	return rc;
}
