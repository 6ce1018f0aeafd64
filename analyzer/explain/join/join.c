/* join.c - see join.h. */
#include "explain/join/join.h"

#include <string.h>

#include "verdict/device/device.h"

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
