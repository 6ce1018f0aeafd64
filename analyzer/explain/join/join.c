/* join.c - see join.h. */
#include "explain/join/join.h"

#include <string.h>

#include "verdict/device/device.h"
#include "verdict/framework/framework_frames.h"
#include "verdict/ledger/bfc.h"
#include "verdict/ledger/ledger.h"

/* Messages print sizes with two decimals, the last one rounded. */
static bool is_size(uint64_t printed, uint64_t bytes)
{
	uint64_t apart = printed > bytes ? printed - bytes : bytes - printed;

	return bytes && apart <= bytes / 160;
}

const struct log_victim *join_victims(
    const struct explanation *e, struct arena *arena, size_t *count)
{
	struct log_victim *list = arena_alloc(arena, (e->count + 1) * sizeof(*list));

	*count = 0;
	for (size_t i = 0; list && i < e->count; i++) {
		const struct explain_message *m = &e->messages[i];
		const struct field *pid = fields_find(&m->fields, "pid");
		const struct field *comm = fields_find(&m->fields, "comm");

		if (m->kind != MESSAGE_FAILURE || strcmp(m->known->framework->id, "kernel") != 0 ||
		    !pid || pid->type != FIELD_INTEGER || !comm || comm->type != FIELD_TEXT)
			continue;
		list[(*count)++] = (struct log_victim){(uint32_t)pid->integer, comm->text};
	}
	return list;
}

static enum join tells_of(const struct explain_message *m, const struct verdict_result *r)
{
	bool kernel = strcmp(m->known->framework->id, "kernel") == 0;
	uint64_t size;

	if (m->kind == MESSAGE_FAILURE && kernel && r->failure.kind == FAILURE_OOM_KILL)
		return JOIN_FAILURE;
	if (!fields_bytes(&m->fields, "requested_bytes", &size))
		return JOIN_NOTHING;
	if (r->failure.kind != FAILURE_NONE &&
	    (is_size(size, r->failure.requested_bytes) ||
		(r->failure.kind == FAILURE_CUDA_OOM && is_size(size, r->devices.first->segment))))
		return JOIN_FAILURE;
	for (size_t i = 0; i < r->recoveries.count; i++)
		if (is_size(size, r->recoveries.list[i].size) ||
		    is_size(size, r->recoveries.list[i].segment))
			return JOIN_RECOVERED;
	return JOIN_NOTHING;
}

const enum join *join_messages(
    const struct explanation *e, const struct verdict_result *r, struct arena *arena)
{
	enum join *of = arena_alloc(arena, (e->count + 1) * sizeof(*of));

	for (size_t i = 0; of && i < e->count; i++)
		of[i] = tells_of(&e->messages[i], r);
	return of;
}

bool join_verdict(const struct explanation *e, const enum join *of, struct verdict_result *r)
{
	bool nothing = r->failure.kind == FAILURE_NONE, unseen = false;
	bool undecided = e->verdict.cause == CAUSE_UNKNOWN;
	struct verdict *v = &r->verdict;
	bool healthy = v->cause == CAUSE_HEALTHY, own = false;

	for (size_t i = 0; i < e->count; i++) {
		bool failed = e->messages[i].kind == MESSAGE_FAILURE && of[i] != JOIN_RECOVERED;

		unseen |= failed;
		own |= failed && strcmp(e->messages[i].known->framework->id, "kernel") != 0;
	}
	/* What a library says of the process itself does not read as healthy because its text
	 * cannot decide; the kernel's log is of everybody. */
	if (!unseen || (undecided && !(healthy && own)) ||
	    (!nothing && !healthy && v->cause != CAUSE_UNKNOWN))
		return false;
	*v = (struct verdict){.cause = e->verdict.cause,
	    .confidence = e->verdict.confidence,
	    .summary = e->verdict.summary,
	    .runner_up = e->verdict.runner_up,
	    .runner_up_confidence = e->verdict.runner_up_confidence};
	for (size_t i = 0; i < e->verdict.fix_count && i < FIXES_MAX; i++)
		v->fixes[v->fix_count++] =
		    (struct fix){e->verdict.fixes[i].for_, e->verdict.fixes[i].text};
	notes_add(
	    &r->notes, nothing ? "The verdict is the log's: the recording saw no request that was "
				 "refused for good, and no kill for want of memory."
			       : "The verdict is the log's: what was recorded does not decide it.");
	return true;
}

/* --- the limit of ONNX Runtime's own arena --- */

#define SECOND_NS 1000000000

struct refusal {
	const struct explain_message *message;
	uint64_t available, requested;
};

/* The last one: what an arena has taken it keeps. */
static bool find_refusal(const struct explanation *e, struct refusal *out)
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

	if (r->failure.kind != FAILURE_NONE || !r->model || !find_refusal(e, &of))
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
		notes_add(&r->notes, "The limit is the arena's own: what its segments hold, by the "
				     "recording, and what was left, by the log. How much of the "
				     "segments was free inside is not recorded.");
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
