/* flow.c - see flow.h. */
#include "verdict/flow.h"

#include <errno.h>
#include <string.h>

#include "model/proportion.h"
#include "util/progress.h"

#define PROGRESS_EVENTS 65536u

static bool in_request(void *arg, uint32_t stack)
{
	return stages_in_request(arg, stack);
}

void flow_fini(struct flow *flow)
{
	requests_held_fini(&flow->held);
	requests_free(flow->requests);
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

/* Requests that began and ended since; as far as they are kept. */
static uint32_t ended_since(const struct requests *r, uint64_t since_ns)
{
	uint32_t ended = 0;

	for (uint32_t i = 0; i < r->kept_count; i++)
		ended += r->kept[i].start_ns >= since_ns;
	return ended;
}

/* What several hold alike, no one call did, although on the thread of an event loop none is seen to
 * be left; nor what is there since before other requests that ended. */
static void mark_calls(struct places *places, const struct requests_held *held)
{
	for (uint32_t i = 0; i < places->count; i++) {
		struct place *p = &places->list[i];

		if ((held->places[i].alike >= 2 &&
			held->places[i].largest < held->places[i].bytes / 2) ||
		    (p->pile.bytes && ended_since(held->of, p->pile.since_ns) >= 2))
			p->open_call = OPEN_CALL_NO;
	}
}

/* Until the moment, so that what lives then is at hand. */
static int read_events(struct flow *flow, struct stages *stages, struct proportion *proportion,
    struct feed *feed, struct err *err)
{
	const struct places *places = proportion->places;
	uint64_t events = 0;
	struct event e;
	int rc = feed->rewind(feed->self, err);

	progress_begin("reading who worked when", feed->facts(feed->self)->event_bytes);
	while (rc == 0 && (rc = feed->next(feed->self, &e, err)) == 1) {
		rc = 0;
		if (e.time_ns > places->moment_ns)
			break;
		if (e.kind == EV_FAILED && e.space == TRACE_SPACE_HOST &&
		    e.time_ns == places->moment_ns)
			break;
		rc = apply(flow->requests, stages, proportion, &e);
		if (rc)
			err_set(err, rc, "no memory for the requests");
		if (++events % PROGRESS_EVENTS == 0 && feed->bytes_read)
			progress_step(feed->bytes_read(feed->self));
	}
	progress_end();
	return rc;
}

int flow_read(struct verdict_result *r, struct feed feed, struct places *places, struct err *err)
{
	const struct failure *f = places->failed == PLACE_NONE ? NULL : model_failure(r->model);
	struct flow *flow = &r->flow;
	struct proportion proportion;
	struct stages stages;
	int rc;

	flow_fini(flow);
	stages_init(&stages, &feed, r->known);
	flow->requests = requests_new(r->known ? in_request : NULL, &stages);
	if (!flow->requests)
		return err_set(err, -ENOMEM, "no memory for the requests");
	rc = proportion_init(&proportion, places, f ? f->size : 0);
	if (rc)
		return err_set(err, rc, "no memory for the requests");
	rc = read_events(flow, &stages, &proportion, &feed, err);
	if (!rc)
		proportion_finish(&proportion);
	proportion_fini(&proportion);
	if (rc)
		return rc;
	rc = requests_held_read(flow->requests, places, feed.each_live, feed.self, &flow->held);
	if (rc)
		err_set(err, rc, "no memory for the requests");
	else
		mark_calls(places, &flow->held);
	phases_read(&r->model->timeline, r->model->first_ns, places->moment_ns, flow->requests,
	    &flow->phases);
	flow->stage_count = stages_list(&stages, flow->stages, ROLE_COUNT);
	/* Its argument ends here. */
	flow->requests->is_entry = NULL;
	return rc;
}

/* --- a device's space --- */

struct of_space {
	struct requests *requests;
	struct proportion *proportion;
	const struct spaces *spaces;
	uint32_t space;
};

static int on_block(void *arg, const struct event *e)
{
	const struct of_space *of = arg;
	int rc = proportion_apply(of->proportion, e);

	return rc ? rc : requests_apply(of->requests, e);
}

static int each_block(void *self, int (*fn)(void *arg, const struct block *b), void *arg)
{
	const struct of_space *of = self;
	int rc = 0;

	for (uint32_t i = 0; i < of->spaces->used && !rc; i++) {
		const struct space_block *b = spaces_block(of->spaces, i);

		if (b->used && b->space == of->space)
			rc = fn(arg, &b->block);
	}
	return rc;
}

static int first_block(void *arg, const struct block *b)
{
	return requests_acquired(arg, b, b->birth_ns);
}

/* The events until `then`, those of the space by way of a model of their own. */
static int read_space(struct of_space *of, struct feed *feed, const struct model *then,
    const char *name, struct err *err)
{
	struct model *m;
	struct event e;
	int rc = model_new(*feed, &m, err);

	if (rc)
		return rc;
	rc = feed->rewind(feed->self, err);
	while (rc == 0 && m->others < then->others && (rc = feed->next(feed->self, &e, err)) == 1) {
		struct space *sp;

		/* What the host holds is nobody's question here. */
		rc = e.kind <= EV_UNFREE ? 0 : model_apply(m, &e, err);
		if (!rc)
			rc = requests_passed(of->requests, &e);
		if (rc || of->spaces)
			continue;
		/* The space came to be with this very block. */
		sp = spaces_find(m->spaces, name);
		if (!sp)
			continue;
		sp->model->witness = (struct witness){of, on_block};
		of->spaces = m->spaces;
		of->space = sp->index;
		rc = each_block(of, first_block, of->requests);
	}
	model_free(m);
	return rc < 0 ? rc : 0;
}

int flow_read_space(struct verdict_result *r, struct feed feed, const struct model *then,
    const struct space *space, struct places *places, struct err *err)
{
	struct flow *flow = &r->flow;
	struct stages stages;
	struct proportion proportion;
	struct of_space of = {.proportion = &proportion};
	int rc = proportion_init(&proportion, places, r->failure.requested_bytes);

	requests_held_fini(&flow->held);
	requests_free(flow->requests);
	stages_init(&stages, &feed, r->known);
	flow->requests = of.requests = requests_new(r->known ? in_request : NULL, &stages);
	if (!rc)
		rc = of.requests ? read_space(&of, &feed, then, space->name, err) : -ENOMEM;
	if (!rc) {
		proportion_finish(&proportion);
		of = (struct of_space){of.requests, NULL, then->spaces, space->index};
		rc = requests_held_read(of.requests, places, each_block, &of, &flow->held);
	}
	if (!rc)
		mark_calls(places, &flow->held);
	proportion_fini(&proportion);
	if (of.requests)
		of.requests->is_entry = NULL;
	return rc ? err_set(err, rc, "no memory for the requests") : 0;
}
