/*
 * what_if_torch.c - changes to what PyTorch asked for on a device: each becomes a rewrite of the
 * requests, or other settings, and all are tried in one pass of the allocator's model.
 */
#include <errno.h>
#include <string.h>

#include "cmd/what_if/what_if.h"
#include "model/space/space.h"
#include "verdict/device/device_rewrite.h"
#include "verdict/judge/put_off.h"
#include "verdict/verdict.h"

static void apply(struct device_rewrite *w, const struct what_if_change *c, struct torch_change *to)
{
	switch (c->kind) {
	case WHAT_IF_MEMORY:
		to->memory = c->value;
		break;
	case WHAT_IF_EXPANDABLE:
		w->settings.expandable = true;
		break;
	case WHAT_IF_MAX_SPLIT:
		w->settings.max_split = c->value;
		break;
	case WHAT_IF_WITHOUT_SITE:
		device_rewrite_rule(w, c->callsite, RULE_KEEP_BYTES, 0);
		break;
	case WHAT_IF_CAP_GROWTH:
		for (uint32_t i = 0; i < w->callsites->count; i++)
			device_rewrite_cap(w, i, c->value);
		break;
	case WHAT_IF_CONCURRENCY: /* put_off() */
	case WHAT_IF_MAX_LEN: /* run() */
	case WHAT_IF_TOGETHER:
	case WHAT_IF_NONE:
		break;
	}
	device_rewrite_change(w, to);
}

/* Where a number of requests is asked for: each one's shift; of several together the smallest
 * number's. */
static int put_off(const struct put_off *p, const struct what_if_change *changes, size_t count,
    struct put_off_schedule *schedules, struct torch_change *tries)
{
	uint64_t least = UINT64_MAX;
	int rc = 0;

	for (size_t i = 0; i < count && !rc; i++) {
		bool together = changes[i].kind == WHAT_IF_TOGETHER && least != UINT64_MAX;

		if (changes[i].kind == WHAT_IF_CONCURRENCY && changes[i].value < least)
			least = changes[i].value;
		if (changes[i].kind != WHAT_IF_CONCURRENCY && !together)
			continue;
		rc = put_off_schedule(p, together ? least : changes[i].value, &schedules[i]);
		tries[i + 1].shift = put_off_shift(&schedules[i]);
	}
	return rc;
}

struct shorter {
	struct feed feed;
	const struct callsites *callsites;
	const struct what_if_lengths *lengths;
	const struct caching_settings *settings;
	uint32_t device;
};

/* All of these lengths in one pass. */
static int fit_shorter(void *arg, const double *most, bool *fits, size_t n, struct err *err)
{
	struct shorter *s = arg;
	struct device_rewrite rewrites[WHAT_IF_TRIES] = {0};
	struct torch_change tries[WHAT_IF_TRIES] = {0};
	struct torch_outcome outcomes[WHAT_IF_TRIES];
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		rc = device_rewrite_init(&rewrites[i], s->callsites, s->settings);
		rewrites[i].lengths = &s->lengths->of;
		rewrites[i].most = most[i];
		device_rewrite_change(&rewrites[i], &tries[i]);
	}
	if (rc)
		err_set(err, rc, "no memory for the lengths");
	else
		rc = torch_replay(s->feed, s->device, tries, n, outcomes, NULL, err);
	for (size_t i = 0; i < n; i++) {
		fits[i] = !rc && outcomes[i].fits;
		device_rewrite_fini(&rewrites[i]);
	}
	return rc;
}

/* The changes, and the requests that they apply to. */
struct question {
	struct feed feed;
	const struct callsites *callsites;
	uint32_t device;
	const struct put_off *requests;
	struct what_if_change *changes;
	size_t count;
};

/* The record's own row, then one for each change. */
static int run(const struct question *q, struct what_if_answer *out, struct err *err)
{
	struct what_if_change *changes = q->changes;
	size_t count = q->count;
	struct device_rewrite rewrites[WHAT_IF_CHANGES] = {0};
	struct put_off_schedule schedules[WHAT_IF_CHANGES] = {0};
	struct torch_change tries[WHAT_IF_CHANGES + 1] = {0};
	struct torch_outcome outcomes[WHAT_IF_CHANGES + 1];
	struct caching_settings settings;
	int rc;

	what_if_find_sites(q->callsites, changes, count);
	torch_replay_settings(q->feed, &settings);
	rc = what_if_lengths_find(&out->lengths,
	    &(struct what_if_scene){.feed = q->feed,
		.callsites = q->callsites,
		.space = out->view.space,
		.moment_ns = UINT64_MAX,
		.fit = fit_shorter,
		.arg =
		    &(struct shorter){q->feed, q->callsites, &out->lengths, &settings, q->device}},
	    changes, count, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < count && !rc; i++) {
		rc = device_rewrite_init(&rewrites[i], q->callsites, &settings);
		rewrites[i].most = what_if_lengths_most(&out->lengths, changes, count, i);
		if (rewrites[i].most > 0)
			rewrites[i].lengths = &out->lengths.of;
		for (size_t k = 0; k < count && !rc; k++)
			if (k == i || changes[i].kind == WHAT_IF_TOGETHER)
				apply(&rewrites[i], &changes[k], &tries[i + 1]);
	}
	if (!rc)
		rc = put_off(q->requests, changes, count, schedules, tries);
	if (rc)
		err_set(err, rc, "no memory for the changes");
	else
		rc = torch_replay(
		    q->feed, q->device, tries, count + 1, outcomes, &out->view.match, err);
	for (size_t i = 0; i <= count && !rc; i++)
		out->view.rows[out->view.count++] =
		    (struct what_if_row){.change = i ? changes[i - 1].words : NULL,
			.fits = outcomes[i].fits,
			.headroom = outcomes[i].headroom,
			.refused = outcomes[i].refused,
			.refusal = outcomes[i].refusal};
	for (size_t i = 0; i < count; i++) {
		device_rewrite_fini(&rewrites[i]);
		put_off_schedule_fini(&schedules[i]);
	}
	return rc;
}

/* Who asked for what: the report's own reading of the trace tells. */
static int read_requests(const struct trace_set *set, uint32_t device,
    struct what_if_change *changes, size_t count, struct put_off *out, struct err *err)
{
	struct verdict_result r;
	int rc;

	if (!what_if_wants(changes, count, WHAT_IF_CONCURRENCY))
		return 0;
	rc = verdict_of_set(set, NULL, &r, err);
	if (rc)
		return rc;
	if (!r.callsites || r.flow.held.alike < 2)
		what_if_none(changes, count, WHAT_IF_CONCURRENCY, WHAT_IF_NOT_AT_ONCE);
	else
		rc = put_off_read(&r, feed_of_trace(r.trace), device, out, err);
	verdict_fini(&r);
	return rc;
}

int what_if_torch(const struct trace_set *set, const struct model *m,
    struct what_if_change *changes, size_t count, struct what_if_answer *out, struct err *err)
{
	struct put_off requests = {0};
	const struct space *sp = spaces_find(m->spaces, out->view.space), *cuda;
	struct callsites *callsites = NULL;
	int rc;

	if (!sp || sp->kind != SPACE_TORCH)
		return err_set(err, -ENOENT,
		    "PyTorch has no blocks in '%.40s' of this trace: --space is torch:N or host",
		    out->view.space);
	rc = read_requests(set, sp->device, changes, count, &requests, err);
	if (!rc)
		rc = callsites_new(sp->model, AT_PEAK, &callsites, err);
	if (!rc)
		rc = run(&(struct question){feed_of_trace(set->images[0]), callsites, sp->device,
			     &requests, changes, count},
		    out, err);
	callsites_free(callsites);
	put_off_fini(&requests);
	if (rc)
		return rc;
	out->view.requested = out->view.rows[0].refused ? out->view.rows[0].refusal.size : 0;
	cuda = spaces_of(m->spaces, SPACE_CUDA, sp->device);
	if (cuda)
		levels_get(&cuda->model->measured.levels, TRACE_LEVEL_DEV_TOTAL, &out->view.limit);
	return 0;
}
