#include "verdict/request/flow.h"

#include <errno.h>
#include <string.h>

#include "model/callsite/proportion.h"
#include "util/progress.h"
#include "util/tuned.h"
#include "verdict/device/device.h"
#include "verdict/request/flow_space.h"

TUNED(uint64_t, LARGEST_PART, 2,
    "a request that holds most of the bytes may be the one call that filled the call site");

static bool in_request(void *arg, uint32_t stack)
{
	return stages_in_request(arg, stack);
}

void flow_fini(struct flow *flow)
{
	requests_held_fini(&flow->held);
	requests_free(flow->requests);
	flow_space_free(flow->space);
	memset(flow, 0, sizeof(*flow));
}

static int apply(struct requests *requests, struct stages *stages, struct proportion *proportion,
    const struct event *e)
{
	const struct block *b = e->block;
	int rc;

	if (b && (e->kind == EV_ALLOC || e->kind == EV_UNFREE))
		stages_acquired(stages, b->stack, block_bytes(b), e->time_ns);
	else if (b && e->kind == EV_FREE)
		stages_released(stages, b->stack, block_bytes(b));
	rc = proportion_apply(proportion, e);
	return rc ? rc : requests_apply(requests, e);
}

static uint32_t ended_since(const struct requests *r, uint64_t since_ns)
{
	uint32_t ended = 0;

	for (uint32_t i = 0; i < r->kept_count; i++)
		ended += r->kept[i].start_ns >= since_ns;
	return ended;
}

/* Bytes that several requests hold alike are not one call's, although none of them is seen to
 * return on an event loop's thread; nor are bytes from before other requests began and ended. */
static void mark_calls(struct callsites *callsites, const struct requests_held *held)
{
	for (uint32_t i = 0; i < callsites->count; i++) {
		struct callsite *p = &callsites->list[i];

		if ((held->callsites[i].alike >= 2 &&
			held->callsites[i].largest < held->callsites[i].bytes / LARGEST_PART) ||
		    (p->buildup.bytes && ended_since(held->of, p->buildup.since_ns) >= 2))
			p->call.open = OPEN_CALL_NO;
	}
}

/* Stop at the moment, so that the feed can be asked for its live blocks. */
static int read_events(struct flow *flow, struct stages *stages, struct proportion *proportion,
    struct feed *feed, struct err *err)
{
	const struct callsites *callsites = proportion->callsites;
	uint64_t events = 0;
	struct event e;
	int rc = feed->rewind(feed->self, err);

	feed_progress(feed, "reading who worked when");
	while (rc == 0 && (rc = feed->next(feed->self, &e, err)) == 1) {
		rc = flow->space ? flow_space_apply(flow->space, &e, err) : 0;
		if (rc || e.time_ns > callsites->moment_ns)
			break;
		if (e.kind == EV_FAILED && e.space == TRACE_SPACE_HOST &&
		    e.time_ns == callsites->moment_ns)
			break;
		rc = apply(flow->requests, stages, proportion, &e);
		if (rc)
			err_set(err, rc, "no memory for the requests");
		feed_passed(feed, ++events);
	}
	progress_end();
	return rc;
}

/* If a device refused, read its requests along with the host's. 0 or -ENOMEM. */
static int follow_space(const struct verdict_result *r, struct feed feed, struct flow *flow)
{
	const struct device_failure *f = device_failed(r) ? spaces_failure(r->model->spaces) : NULL;

	if (!f)
		return 0;
	flow->space = flow_space_new(feed, r->frameworks.frames,
	    r->model->spaces->list[f->space]->name, f->event ? f->event : UINT64_MAX);
	return flow->space ? 0 : -ENOMEM;
}

int flow_read(const struct verdict_result *r, struct feed feed, struct callsites *callsites,
    struct flow *flow, struct err *err)
{
	const struct failure *f =
	    callsites->failed == CALLSITE_NONE ? NULL : model_failure(r->model);
	struct proportion proportion;
	struct stages stages;
	int rc;

	flow_fini(flow);
	stages_init(&stages, &feed, r->frameworks.frames);
	flow->requests = requests_new(r->frameworks.frames ? in_request : NULL, &stages);
	if (!flow->requests || follow_space(r, feed, flow))
		return err_set(err, -ENOMEM, "no memory for the requests");
	rc = proportion_init(&proportion, callsites, f ? f->size : 0);
	if (rc)
		return err_set(err, rc, "no memory for the requests");
	rc = read_events(flow, &stages, &proportion, &feed, err);
	if (!rc)
		proportion_finish(&proportion);
	proportion_fini(&proportion);
	if (rc)
		return rc;
	rc = requests_held_read(
	    flow->requests, r->model, callsites, feed.each_live, feed.self, &flow->held);
	if (rc)
		err_set(err, rc, "no memory for the requests");
	else
		mark_calls(callsites, &flow->held);
	phases_read(&r->model->timeline, r->model->run.first_ns, callsites->moment_ns,
	    flow->requests, &flow->phases);
	flow->stage_count = stages_list(&stages, flow->stages, ROLE_COUNT);
	/* Its argument ends here. */
	flow->requests->is_entry = NULL;
	return rc;
}

int flow_read_on(struct flow *flow, struct err *err)
{
	return flow->space ? flow_space_read(flow->space, err) : 0;
}

void flow_settle(const struct verdict_result *r, struct flow *flow)
{
	struct phases *p = &flow->phases;
	bool loading = r->ranking.count && r->verdict.cause == CAUSE_OVERSIZED_MODEL &&
		       !r->ranking.list[0].finding.late;

	if (loading && p->count > 1 && !p->list[0].marked && !p->list[1].marked && flow->requests &&
	    !flow->requests->begun) {
		p->list[0].end_ns = p->list[p->count - 1].end_ns;
		p->list[0].live_bytes = p->list[p->count - 1].live_bytes;
		p->count = 1;
	}
}

/* Read the requests in that space, unless flow_read() did so along with the host's. */
static int read_space(const struct verdict_result *r, const struct flow_of_space *of,
    struct flow *flow, struct err *err)
{
	const char *name = of->space->name;
	struct feed feed = of->feed;
	int rc;

	if (flow->space && strcmp(flow_space_name(flow->space), name) == 0)
		return 0;
	flow_space_free(flow->space);
	flow->space = flow_space_new(feed, r->frameworks.frames, name, of->then->run.others);
	if (!flow->space)
		return err_set(err, -ENOMEM, "no memory for the requests");
	rc = feed.rewind(feed.self, err);
	return rc ? rc : flow_space_read(flow->space, err);
}

static int read_proportion(
    const struct verdict_result *r, const struct flow_of_space *of, struct err *err)
{
	struct proportion proportion;
	int rc = proportion_init(&proportion, of->callsites, r->failure.requested_bytes);

	if (rc)
		err_set(err, rc, "no memory for the requests");
	else if (proportion.callsite != CALLSITE_NONE)
		rc = flow_space_proportion(
		    of->feed, of->space->name, of->then->run.others, &proportion, err);
	if (!rc)
		proportion_finish(&proportion);
	proportion_fini(&proportion);
	return rc;
}

struct blocks_of_space {
	const struct spaces *spaces;
	uint32_t space;
};

static int each_block(void *self, int (*fn)(void *arg, const struct block *b), void *arg)
{
	const struct blocks_of_space *of = self;
	int rc = 0;

	for (uint32_t i = 0; i < of->spaces->used && !rc; i++) {
		const struct space_block *b = spaces_block(of->spaces, i);

		if (b->used && b->space == of->space)
			rc = fn(arg, &b->block);
	}
	return rc;
}

int flow_read_space(const struct verdict_result *r, const struct flow_of_space *of,
    struct flow *flow, struct err *err)
{
	struct blocks_of_space blocks = {of->then->spaces, of->space->index};
	int rc = read_space(r, of, flow, err);

	if (!rc)
		rc = read_proportion(r, of, err);
	if (rc)
		return rc;
	requests_held_fini(&flow->held);
	requests_free(flow->requests);
	flow->requests = flow_space_take(flow->space);
	flow_space_free(flow->space);
	flow->space = NULL;
	rc = requests_held_read(
	    flow->requests, NULL, of->callsites, each_block, &blocks, &flow->held);
	if (rc)
		return err_set(err, rc, "no memory for the requests");
	mark_calls(of->callsites, &flow->held);
	return 0;
}
