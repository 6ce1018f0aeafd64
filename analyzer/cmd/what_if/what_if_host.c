/*
 * what_if_host.c - changes to what the host's memory was used for, judged at the moment that the
 * report is about: what lives then without the bytes that a change takes away, against the limit.
 * Requests that wait for others are put off in time, and what lives at most is judged.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/what_if/what_if.h"
#include "util/num.h"
#include "verdict/device/device.h"
#include "verdict/judge/counterfactual.h"
#include "verdict/judge/put_off.h"
#include "verdict/verdict.h"

static void cap_all(struct finding *f, const struct callsites *callsites, uint64_t cap)
{
	for (uint32_t i = 0; i < callsites->count; i++) {
		const struct callsite *p = &callsites->list[i];
		uint64_t most = (uint64_t)p->size.first + cap;

		if (p->facts.live_bytes > most)
			finding_claim(f, i, RULE_KEEP_BYTES, most, p->facts.live_bytes - most);
	}
}

/* Those that held most go on, and the others have not begun. */
static void limit_requests(struct finding *f, const struct verdict_result *r,
    const struct callsites *callsites, uint64_t most)
{
	const struct requests_held *held = &r->flow.held;

	for (uint32_t i = 0; i < callsites->count && held->callsites; i++) {
		uint64_t live = callsites->list[i].facts.live_bytes, gone;

		if (held->callsites[i].alike < 2)
			continue;
		gone = held->callsites[i].bytes - requests_held_first(held, i, most);
		if (gone > live)
			gone = live;
		finding_claim(f, i, RULE_KEEP_BYTES, live - gone, gone);
	}
}

static void claim(struct candidate *c, const struct what_if_change *change,
    const struct verdict_result *r, uint64_t *limit)
{
	const struct callsites *callsites = r->callsites;

	switch (change->kind) {
	case WHAT_IF_MEMORY:
		*limit = change->value;
		break;
	case WHAT_IF_WITHOUT_SITE:
		finding_claim(&c->finding, change->callsite, RULE_KEEP_BYTES, 0,
		    callsites->list[change->callsite].facts.live_bytes);
		break;
	case WHAT_IF_CAP_GROWTH:
		cap_all(&c->finding, callsites, change->value);
		break;
	case WHAT_IF_CONCURRENCY:
		/* Of the host they are put off: put_off(). */
		if (r->failure.kind == FAILURE_CUDA_OOM)
			limit_requests(&c->finding, r, callsites, change->value);
		break;
	case WHAT_IF_MAX_LEN: /* shorten() */
	case WHAT_IF_EXPANDABLE:
	case WHAT_IF_MAX_SPLIT:
	case WHAT_IF_TOGETHER:
	case WHAT_IF_NONE:
		break;
	}
}

/* The refused request, when it was of a site that is taken away. */
static uint64_t request_of(const struct verdict_result *r, const struct candidate *c)
{
	for (uint32_t i = 0; i < c->finding.claim_count; i++)
		if (c->finding.claims[i].callsite == r->callsites->failed &&
		    r->callsites->failed != CALLSITE_NONE)
			return c->finding.claims[i].value;
	return UINT64_MAX;
}

static void add_row(
    struct what_if_answer *out, const char *words, uint64_t used, uint64_t request, uint64_t limit)
{
	int64_t headroom = (int64_t)(limit - used - request);

	out->view.rows[out->view.count++] =
	    (struct what_if_row){.change = words, .fits = headroom >= 0, .headroom = headroom};
}

/* The smallest number of requests at once that is asked for by these; 0: none is. */
static uint64_t at_once(const struct what_if_change *changes, size_t count, size_t which)
{
	uint64_t least = 0;

	for (size_t k = 0; k < count; k++)
		if ((k == which || changes[which].kind == WHAT_IF_TOGETHER) &&
		    changes[k].kind == WHAT_IF_CONCURRENCY && (!least || changes[k].value < least))
			least = changes[k].value;
	return least;
}

/* How much more lives at most, when so many are at work at once, than lived at the moment; the
 * refused request is in it. */
static int put_off(const struct put_off *p, const struct verdict_result *r, uint64_t most,
    int64_t *more, struct err *err)
{
	struct put_off_schedule s;
	uint64_t peak, live;
	int rc = put_off_schedule(p, most, &s);

	if (!rc)
		rc = put_off_peak(&s, r->callsites->moment_ns, &peak, &live);
	put_off_schedule_fini(&s);
	if (rc)
		return err_set(err, rc, "no memory for the requests");
	*more = (int64_t)(peak - live);
	return 0;
}

/* What a change takes away of a place is not taken once more. */
struct untouched {
	const struct callsites *callsites;
	const struct candidate *candidate;
};

static bool is_untouched(void *arg, uint32_t stack)
{
	const struct untouched *u = arg;
	uint32_t callsite = callsites_of_stack(u->callsites, STACK_STATS_HEAP, stack);

	for (uint32_t i = 0; u->candidate && i < u->candidate->finding.claim_count; i++)
		if (u->candidate->finding.claims[i].callsite == callsite)
			return false;
	return true;
}

/* With inputs no longer than that: bytes that live less, and what is asked for at the moment. */
static uint64_t shorten(const struct what_if_lengths *l, const struct verdict_result *r,
    const struct candidate *c, double most, uint64_t *request)
{
	struct untouched u = {r->callsites, c};
	uint64_t size;

	if (l->of.refused) {
		size = lengths_size(&l->of, l->of.refused - 1, most);
		if (size < *request)
			*request = size;
		*request += lengths_further(&l->of, most);
	}
	return lengths_less(&l->of, most, is_untouched, &u);
}

struct shorter {
	const struct what_if_lengths *lengths;
	const struct verdict_result *result;
};

static int fit_shorter(void *arg, const double *most, bool *fits, size_t n, struct err *err)
{
	const struct shorter *s = arg;
	const struct failure_view *f = &s->result->failure;

	for (size_t i = 0; i < n; i++) {
		uint64_t request = f->requested_bytes,
			 less = shorten(s->lengths, s->result, NULL, most[i], &request);

		fits[i] = num_less(f->usage_bytes, less) + request <= f->limit_bytes;
	}
	(void)err;
	return 0;
}

/* Of the driver, whose blocks of a request are not put off. */
static const char by_one_moment[] = "at most that, as it is a sum over that one moment: the "
				    "requests that held most continue from there and may take more";

static int judge(struct verdict_result *r, struct what_if_change *changes, size_t count,
    struct what_if_answer *out, struct err *err)
{
	const struct failure_view *f = &r->failure;
	struct candidate *candidates = calloc(count + 1, sizeof(*candidates));
	struct replay_result results[WHAT_IF_CHANGES];
	uint64_t limits[WHAT_IF_CHANGES];
	const char *space = f->kind == FAILURE_CUDA_OOM ? r->devices.first->space : NULL;
	struct put_off requests = {0};
	int64_t more = 0;
	int rc = 0;

	if (!candidates)
		return err_set(err, -ENOMEM, "no memory for the changes");
	what_if_find_sites(r->callsites, changes, count);
	if (r->flow.held.alike < 2)
		what_if_none(changes, count, WHAT_IF_CONCURRENCY, WHAT_IF_NOT_AT_ONCE);
	for (size_t i = 0; i < count; i++)
		limits[i] = f->limit_bytes;
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < count; k++)
			if (k == i || changes[i].kind == WHAT_IF_TOGETHER)
				claim(&candidates[i], &changes[k], r, &limits[i]);
	rc = what_if_lengths_find(&out->lengths,
	    &(struct what_if_scene){.feed = r->model->feed,
		.callsites = r->callsites,
		.space = space,
		.moment_ns = r->callsites->moment_ns,
		.fit = fit_shorter,
		.arg = &(struct shorter){&out->lengths, r}},
	    changes, count, err);
	if (!rc && !space && what_if_wants(changes, count, WHAT_IF_CONCURRENCY))
		rc = put_off_read(r, r->model->feed, PUT_OFF_HOST, &requests, err);
	if (!rc)
		rc = counterfactual_replay(r->model->feed,
		    &(struct scene){.space = space, .callsites = r->callsites}, candidates, count,
		    results, err);
	add_row(out, NULL, f->usage_bytes, f->requested_bytes, f->limit_bytes);
	for (size_t i = 0; i < count && !rc; i++) {
		uint64_t removed = results[i].live - results[i].without;
		uint64_t request = num_least(request_of(r, &candidates[i]), f->requested_bytes);
		uint64_t at_most = at_once(changes, count, i), most = space ? 0 : at_most;
		double length = what_if_lengths_most(&out->lengths, changes, count, i);

		if (length > 0)
			removed += shorten(&out->lengths, r, &candidates[i], length, &request);
		if (most) {
			rc = put_off(&requests, r, most, &more, err);
			if (rc)
				break;
			more -= (int64_t)removed;
			add_row(out, changes[i].words, (uint64_t)((int64_t)f->usage_bytes + more),
			    0, limits[i]);
			continue;
		}
		add_row(
		    out, changes[i].words, num_less(f->usage_bytes, removed), request, limits[i]);
		if (at_most)
			out->view.rows[out->view.count - 1].note = by_one_moment;
	}
	put_off_fini(&requests);
	free(candidates);
	return rc;
}

int what_if_host(const struct trace_set *set, struct what_if_change *changes, size_t count,
    struct what_if_answer *out, struct err *err)
{
	struct verdict_result r;
	int rc = verdict_of_set(set, NULL, &r, err);
	bool device;

	if (rc)
		return rc;
	device = r.failure.kind == FAILURE_CUDA_OOM;
	if (!r.model || !r.callsites || !r.failure.limit_bytes ||
	    strcmp(out->view.space, device ? r.devices.first->space : "host") != 0)
		rc = err_set(err, -ENOENT, "the trace does not say the limit of %s",
		    strcmp(out->view.space, "host") == 0 ? "the host's memory" : out->view.space);
	else
		rc = judge(&r, changes, count, out, err);
	out->view.requested = r.failure.requested_bytes;
	out->view.limit = r.failure.limit_bytes;
	verdict_fini(&r);
	return rc;
}
