/* join_arena.c - see join_arena.h. */
#include "explain/join/join_arena.h"

#include <string.h>

#include "verdict/framework/framework_frames.h"
#include "verdict/ledger/bfc.h"
#include "verdict/ledger/ledger.h"

#define SECOND_NS 1000000000

struct refusal {
	const struct explain_message *message;
	uint64_t available, requested;
};

/* The last one: what an arena has taken it keeps. */
static bool find(const struct explanation *e, struct refusal *out)
{
	bool found = false;

	for (size_t i = 0; i < e->count; i++) {
		const struct explain_message *m = &e->messages[i];
		struct refusal now = {.message = m};

		if (m->kind != MESSAGE_FAILURE ||
		    strcmp(m->known->framework->id, "onnxruntime") != 0 ||
		    !fields_bytes(&m->fields, "available_bytes", &now.available) ||
		    !fields_bytes(&m->fields, "requested_bytes", &now.requested) ||
		    now.requested <= now.available)
			continue;
		*out = now;
		found = true;
	}
	return found;
}

/* When it was, since the start: as the log says, where that is within the run. Logs are in local
 * time: the part of an hour must do. */
static uint64_t moment(const struct refusal *of, const struct verdict_result *r)
{
	const struct feed *feed = &r->model->feed;
	const struct trace_facts *facts = feed->facts(feed->self);
	const int64_t quarter = 900ll * SECOND_NS;
	int64_t at = of->message->when.ns - (int64_t)facts->start_real_ns;

	if (of->message->when.clock != WHEN_WALL || !of->message->when.year)
		return r->model->run.last_ns;
	at = (at % quarter + quarter) % quarter;
	return (uint64_t)at <= r->model->run.last_ns ? (uint64_t)at : r->model->run.last_ns;
}

/* By what took each region. What is free inside is not recorded. */
static void make_ledger(const struct bfc *b, const struct refusal *of, struct verdict_result *r)
{
	struct ledger *l = &r->ledger;
	uint64_t weights = 0, rest = 0;

	for (size_t i = 0; i < b->regions.count; i++) {
		const struct bfc_region *region = &b->regions.items[i];
		enum role role = r->frameworks.frames
				     ? (enum role)framework_stack(
					   r->frameworks.frames, &r->model->feed, region->stack)
					   .role
				     : ROLE_NONE;

		*(role == ROLE_WEIGHTS_LOAD ? &weights : &rest) += region->size;
	}
	*l = (struct ledger){.pid = r->failure.pid,
	    .limit = LIMIT_ARENA,
	    .limit_bytes = r->failure.limit_bytes,
	    .at = "failure"};
	ledger_row(l, "weights", weights);
	ledger_row(l, "arena segments", rest);
	ledger_row(l, "free", of->available);
	ledger_close(l);
}

int join_arena(const struct explanation *e, struct verdict_result *r, struct err *err)
{
	struct refusal of;
	struct bfc bfc;
	int rc;

	if (r->failure.kind != FAILURE_NONE || !r->model || !find(e, &of))
		return 0;
	rc = bfc_read(&r->model->feed, &bfc, err);
	if (!rc && bfc.regions.count && !bfc.several) {
		r->failure.kind = FAILURE_HOST_ALLOC;
		r->failure.pid = r->tree.processes[r->tree.subject].pid;
		r->failure.time_ns = moment(&of, r);
		r->failure.requested_bytes = of.requested;
		r->failure.limit = LIMIT_ARENA;
		r->failure.limit_bytes = bfc.most + of.available;
		r->failure.usage_bytes = bfc.most;
		r->what_ifs.count = 0; /* were of another limit */
		make_ledger(&bfc, &of, r);
		notes_add(&r->notes,
		    "The limit is the arena's own: what its segments hold, by the recording, and "
		    "what was left, by the log. How much of the segments was free inside is not "
		    "recorded.");
	} else if (!rc) {
		notes_add(&r->notes,
		    bfc.several ? "The log tells of a limit of ONNX Runtime's arena; the recording "
				  "has several arenas, and which one it was of is not known."
				: "The log tells of a limit of ONNX Runtime's arena; the recording "
				  "has no such arena in the host's memory.");
	}
	bfc_fini(&bfc);
	return rc;
}
