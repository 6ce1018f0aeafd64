#include "verdict/request/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/callsite/proportion.h"
#include "util/progress.h"
#include "util/tuned.h"
#include "verdict/device/device.h"
#include "verdict/request/flow_maps.h"

TUNED(uint64_t, LARGEST_PART, 2,
    "a request that holds most of the bytes may be the one call that filled the call site");

/* The blocks of a space, through a model of their own. */
struct blocks {
	struct model *model;
	const char *name;
	bool found; /* the space exists */
};

static int blocks_apply(
    struct blocks *b, const struct event *e, struct witness witness, bool *came, struct err *err)
{
	struct space *sp;
	/* This model needs no blocks of the host. */
	int rc = e->kind <= EV_UNFREE ? 0 : model_apply(b->model, e, err);

	*came = false;
	if (rc || b->found || e->kind <= EV_UNFREE)
		return rc;
	sp = spaces_find(b->model->spaces, b->name);
	if (sp) {
		sp->model->options.witness = witness;
		*came = b->found = true;
	}
	return 0;
}

/* The requests that work in a device's space until it refuses one. The host's events also show
 * which request a thread works for, so both flows are read in one pass. */
struct flow_space {
	struct feed feed;
	struct blocks blocks;
	uint64_t until; /* events that are no blocks of the host's: struct model's run.others */
	struct stages stages;
	struct requests *requests;
};

static void stages_apply(struct stages *stages, const struct event *e)
{
	const struct block *b = e->block;

	if (b && (e->kind == EV_ALLOC || e->kind == EV_UNFREE))
		stages_acquired(stages, b->stack, block_bytes(b), e->time_ns);
	else if (b && e->kind == EV_FREE)
		stages_released(stages, b->stack, block_bytes(b));
}

static int on_block(void *arg, const struct event *e)
{
	struct flow_space *f = arg;

	stages_apply(&f->stages, e);
	return requests_apply(f->requests, e);
}

static void flow_space_free(struct flow_space *f)
{
	if (!f)
		return;
	model_free(f->blocks.model);
	requests_free(f->requests);
	free(f);
}

/* Begin with no events. `name`, the space's, stays the caller's; `known` may be NULL. NULL: no
 * memory. */
static struct flow_space *flow_space_new(
    struct feed feed, struct framework_frames *known, const char *name, uint64_t until)
{
	struct flow_space *f = calloc(1, sizeof(*f));
	struct err err;

	if (!f)
		return NULL;
	f->feed = feed;
	f->until = until;
	f->blocks.name = name;
	stages_init(&f->stages, &f->feed, known);
	f->requests = stages_requests(&f->stages);
	if (!f->requests || model_new(feed, &f->blocks.model, &err)) {
		flow_space_free(f);
		return NULL;
	}
	return f;
}

static bool is_done(const struct flow_space *f)
{
	return f->blocks.model->run.others >= f->until;
}

/* Add the blocks of the event that created the space. */
static int first_blocks(struct flow_space *f)
{
	const struct spaces *all = f->blocks.model->spaces;
	uint32_t own = spaces_find(all, f->blocks.name)->index;
	int rc = 0;

	for (uint32_t i = 0; i < all->used && !rc; i++) {
		const struct space_block *b = spaces_block(all, i);

		if (!b->used || b->space != own)
			continue;
		stages_acquired(&f->stages, b->block.stack, b->block.size, b->block.birth_ns);
		rc = requests_acquired(f->requests, &b->block, b->block.birth_ns);
	}
	return rc;
}

/* Take the feed's next event; after the last one, do nothing. 0; negative errno with err. */
static int flow_space_apply(struct flow_space *f, const struct event *e, struct err *err)
{
	struct witness witness = {f, on_block};
	bool came;
	int rc;

	if (is_done(f))
		return 0;
	rc = blocks_apply(&f->blocks, e, witness, &came, err);
	if (!rc)
		rc = requests_passed(f->requests, e);
	if (!rc && came)
		rc = first_blocks(f);
	return rc ? err_set(err, rc, "no memory for the requests") : 0;
}

/* Read on until all events were seen or the feed ends. 0; negative errno with err. */
static int flow_space_read(struct flow_space *f, struct err *err)
{
	struct event e;
	uint64_t events = 0;
	int rc = 0;

	feed_progress(&f->feed, "reading who worked on the device");
	while (rc == 0 && !is_done(f) && (rc = f->feed.next(f->feed.self, &e, err)) == 1) {
		rc = flow_space_apply(f, &e, err);
		feed_passed(&f->feed, ++events);
	}
	progress_end();
	return rc;
}

static int on_made(void *arg, const struct event *e)
{
	return proportion_apply(arg, e);
}

/* Feed the space's blocks to `proportion`, from the feed's start until that many run.others. 0;
 * negative errno with err. */
static int flow_space_proportion(struct feed feed, const char *name, uint64_t until,
    struct proportion *proportion, struct err *err)
{
	struct blocks blocks = {.name = name};
	struct event e;
	uint64_t events = 0;
	bool came;
	int rc = model_new(feed, &blocks.model, err);

	if (rc)
		return rc;
	rc = feed_rewind_spaces(&feed, err);
	feed_progress(&feed, "reading what was made of what on the device");
	while (rc == 0 && blocks.model->run.others < until &&
	       (rc = feed.next(feed.self, &e, err)) == 1) {
		rc = blocks_apply(&blocks, &e, (struct witness){proportion, on_made}, &came, err);
		feed_passed(&feed, ++events);
	}
	progress_end();
	model_free(blocks.model);
	return rc;
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
	int rc;

	stages_apply(stages, e);
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
static int read_events(struct flow *flow, struct stages *stages, struct flow_maps *maps,
    struct proportion *proportion, struct feed *feed, struct err *err)
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
		/* Blocks are most events by far. */
		if (!rc && e.kind > EV_UNFREE)
			rc = flow_maps_apply(maps, &e);
		if (rc)
			err_set(err, rc, "no memory for the requests");
		feed_passed(feed, ++events);
	}
	progress_end();
	return rc;
}

/* If a device refused, read its requests along with the host's. 0 or -ENOMEM. */
static int follow_space(struct verdict_result *r, struct feed feed)
{
	const struct device_failure *f = device_failed(r) ? spaces_failure(r->model->spaces) : NULL;

	if (!f)
		return 0;
	r->flow.space = flow_space_new(feed, r->frameworks.frames,
	    r->model->spaces->list[f->space]->name, f->event ? f->event : UINT64_MAX);
	return r->flow.space ? 0 : -ENOMEM;
}

struct live {
	const struct feed *feed;
	const struct flow_maps *maps;
};

static int each_live(void *self, int (*fn)(void *arg, const struct block *b), void *arg)
{
	const struct live *live = self;
	int rc = live->feed->each_live(live->feed->self, fn, arg);

	return rc ? rc : flow_maps_each(live->maps, fn, arg);
}

int flow_read(struct verdict_result *r, struct feed feed, struct err *err)
{
	struct callsites *callsites = r->callsites;
	struct flow *flow = &r->flow;
	const struct failure *f =
	    callsites->failed == CALLSITE_NONE ? NULL : model_failure(r->model);
	struct proportion proportion;
	struct flow_maps maps;
	struct stages stages;
	int rc;

	flow_fini(flow);
	stages_init(&stages, &feed, r->frameworks.frames);
	flow->requests = stages_requests(&stages);
	if (!flow->requests || follow_space(r, feed))
		return err_set(err, -ENOMEM, "no memory for the requests");
	rc = proportion_init(&proportion, callsites, f ? f->size : 0);
	if (rc)
		return err_set(err, rc, "no memory for the requests");
	flow_maps_init(&maps, flow->requests, callsites);
	rc = read_events(flow, &stages, &maps, &proportion, &feed, err);
	if (!rc)
		proportion_finish(&proportion);
	proportion_fini(&proportion);
	if (!rc) {
		rc = requests_held_read(flow->requests, r->model, callsites, each_live,
		    &(struct live){&feed, &maps}, &flow->held);
		if (rc)
			err_set(err, rc, "no memory for the requests");
	}
	flow_maps_fini(&maps);
	if (rc)
		return rc;
	/* A file system's feed shows no releases of malloc's blocks, by which a thread begins anew.
	 */
	for (uint32_t i = 0; r->volume && i < callsites->count; i++)
		flow->held.callsites[i].in_one_go = 0;
	mark_calls(callsites, &flow->held);
	phases_read(&r->model->timeline, r->model->run.first_ns, callsites->moment_ns,
	    flow->requests, r->model->base.attached, &flow->phases);
	flow->stage_count = stages_list(&stages, flow->stages);
	/* Its argument ends here. */
	flow->requests->is_entry = NULL;
	return 0;
}

int flow_read_on(struct flow *flow, struct err *err)
{
	return flow->space ? flow_space_read(flow->space, err) : 0;
}

void flow_settle(struct verdict_result *r)
{
	struct phases *p = &r->flow.phases;
	bool loading = r->ranking.count && r->verdict.cause == CAUSE_OVERSIZED_MODEL &&
		       !r->ranking.list[0].finding.late;

	if (loading && p->count > 1 && !p->list[0].marked && !p->list[1].marked &&
	    r->flow.requests && !r->flow.requests->begun) {
		p->list[0].end_ns = p->list[p->count - 1].end_ns;
		p->list[0].live_bytes = p->list[p->count - 1].live_bytes;
		p->count = 1;
	}
}

/* Read the requests in that space, unless flow_read() did so along with the host's. */
static int read_space(
    struct verdict_result *r, struct feed feed, const char *name, uint64_t until, struct err *err)
{
	struct flow *flow = &r->flow;
	int rc;

	if (flow->space && strcmp(flow->space->blocks.name, name) == 0)
		return 0;
	flow_space_free(flow->space);
	flow->space = flow_space_new(feed, r->frameworks.frames, name, until);
	if (!flow->space)
		return err_set(err, -ENOMEM, "no memory for the requests");
	rc = feed.rewind(feed.self, err);
	return rc ? rc : flow_space_read(flow->space, err);
}

static int read_proportion(
    struct verdict_result *r, struct feed feed, const char *name, uint64_t until, struct err *err)
{
	struct proportion proportion;
	int rc = proportion_init(&proportion, r->callsites, r->failure.requested_bytes);

	if (rc)
		err_set(err, rc, "no memory for the requests");
	else if (proportion.callsite != CALLSITE_NONE)
		rc = flow_space_proportion(feed, name, until, &proportion, err);
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

int flow_read_space(struct verdict_result *r, struct feed feed, const struct model *then,
    const struct space *space, struct err *err)
{
	struct blocks_of_space blocks = {then->spaces, space->index};
	struct flow *flow = &r->flow;
	int rc = read_space(r, feed, space->name, then->run.others, err);

	if (!rc)
		rc = read_proportion(r, feed, space->name, then->run.others, err);
	if (rc)
		return rc;
	requests_held_fini(&flow->held);
	requests_free(flow->requests);
	flow->requests = flow->space->requests;
	flow->space->requests = NULL;
	flow->stage_count = stages_list(&flow->space->stages, flow->stages);
	phases_read(&space->model->timeline, r->model->run.first_ns, r->callsites->moment_ns,
	    flow->requests, r->model->base.attached, &flow->phases);
	/* Its argument is freed with the space. */
	flow->requests->is_entry = NULL;
	flow_space_free(flow->space);
	flow->space = NULL;
	rc = requests_held_read(
	    flow->requests, NULL, r->callsites, each_block, &blocks, &flow->held);
	if (rc)
		return err_set(err, rc, "no memory for the requests");
	mark_calls(r->callsites, &flow->held);
	return 0;
}
