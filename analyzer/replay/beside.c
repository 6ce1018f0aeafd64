/*
 * beside.c - what lies beside the replayed requests in the limit's measure: files, stacks, the
 * interpreter itself. How much of it the record shows is known where levels were measured by kinds;
 * a constant is left, which is settled by trying: first as it was when the process began, then by
 * as much as the replay's size at the failure is off the record's. So the replay has the record's
 * size at the one moment that was measured best, and whether it fails there, or before, is its own.
 *
 * Trying has to be under the limit: an allocator that is refused address space goes other ways.
 */
#include <stdlib.h>

#include "replay/host.h"
#include "util/num.h"

#define TRIES 4
#define CLOSE_BYTES 65536 /* to the record: no further try */
#define NEAR 64 /* of the limit that part may still be granted of what the record was refused */
#define KILL_EXACT 50 /* resident bytes are known to so much */

enum play_limit beside_kind(const struct host *h)
{
	if (!h->out->original.failed && !h->request->memory)
		return PLAY_LIMIT_NONE;
	switch (h->out->limit_kind) {
	case LIMIT_AS:
		return PLAY_LIMIT_AS;
	case LIMIT_DATA:
		return PLAY_LIMIT_DATA;
	case LIMIT_NONE:
	case LIMIT_CGROUP:
	case LIMIT_SYSTEM:
		return PLAY_LIMIT_RESIDENT;
	default: /* no address space holds it, here neither; or nobody knows */
		return PLAY_LIMIT_NONE;
	}
}

static uint64_t measure(const struct recorded_sample *s, enum play_limit kind)
{
	return kind == PLAY_LIMIT_AS ? s->size : kind == PLAY_LIMIT_DATA ? s->data : s->resident;
}

/* The record's at the moment, or NULL. */
static const struct recorded_sample *sample_at(const struct host *h, uint32_t moment)
{
	uint32_t i = h->out->plan.moments.items[moment].recorded;

	return i == PLAN_NONE ? NULL : &h->recorded.samples.items[i];
}

/* The sample to measure by: at the refusal; of a kill, the one with the most resident. */
void beside_find_failing(struct host *h, enum play_limit kind)
{
	const struct plan_facts *plan = &h->out->plan;
	bool refused = h->last.size > 0;
	uint64_t most = 0;

	h->failing = PLAN_NONE;
	for (uint32_t i = 0; i < plan->moments.count; i++) {
		const struct plan_moment *m = &plan->moments.items[i];
		const struct recorded_sample *s = sample_at(h, i);

		if (!s || (refused && m->time_ns > h->last.time_ns))
			continue;
		if (refused ? measure(s, kind) > 0 : s->resident >= most && s->resident) {
			h->failing = i;
			most = s->resident;
		}
	}
}

static uint64_t measured(const struct play_sample *s, enum play_limit kind)
{
	return kind == PLAY_LIMIT_AS ? s->size : kind == PLAY_LIMIT_DATA ? s->data : s->resident;
}

uint64_t beside_recorded(const struct host *h, uint32_t moment, enum play_limit kind)
{
	const struct recorded_sample *s = sample_at(h, moment);

	return s ? measure(s, kind) : 0;
}

/* What files and stacks take of that measure at the moment; what was measured last holds on. */
static uint64_t others(const struct host *h, uint32_t moment, enum play_limit kind, uint64_t before)
{
	const struct recorded_sample *s = sample_at(h, moment);

	if (!s || kind == PLAY_LIMIT_DATA)
		return before;
	if (kind == PLAY_LIMIT_AS)
		return s->beside;
	return s->resident && s->anonymous ? num_less(s->resident, s->anonymous) : before;
}

/* The samples' .beside for that constant. What the player has itself more than the program had is
 * given to the limit; returned. */
static uint64_t set(struct host *h, enum play_limit kind, int64_t constant)
{
	struct play_sample *samples = h->player.play->samples;
	uint64_t now = 0, more = 0;

	for (uint32_t i = 0; i < h->player.samples; i++) {
		int64_t beside;

		now = others(h, i, kind, now);
		beside = (int64_t)now + constant;
		samples[i].beside = (uint64_t)beside;
		if (beside < 0 && (uint64_t)-beside > more)
			more = (uint64_t)-beside;
	}
	for (uint32_t i = 0; i < h->player.samples; i++)
		samples[i].beside += more;
	return more;
}

/* By how much the record's size is above the replay's at the moment, in the run that was made. */
static int64_t lack(const struct host *h, uint32_t moment, enum play_limit kind, uint64_t more)
{
	const struct play_sample *s = &h->player.play->samples[moment];

	return (int64_t)(beside_recorded(h, moment, kind) + more) -
	       (int64_t)(measured(s, kind) + s->beside);
}

/* The latest moment that the run reached, not after the failure's, of which the record tells. */
static uint32_t last_known(const struct host *h, enum play_limit kind)
{
	uint32_t found = PLAN_NONE, last = h->player.play->sample;

	for (uint32_t i = 0; i <= last && i <= h->failing && i < h->player.samples; i++)
		if (beside_recorded(h, i, kind))
			found = i;
	return found;
}

/* What the record's size at the moment leaves for it, as far as the run without a limit goes. */
static int64_t constant_at(const struct host *h, uint32_t moment, enum play_limit kind)
{
	uint64_t now = 0;

	for (uint32_t i = 0; i <= moment; i++)
		now = others(h, i, kind, now);
	return (int64_t)beside_recorded(h, moment, kind) -
	       (int64_t)(measured(&h->reference[moment], kind) + now);
}

static uint32_t first_known(const struct host *h, enum play_limit kind)
{
	uint32_t i = 0;

	while (i < h->failing && !beside_recorded(h, i, kind))
		i++;
	return i;
}

static uint64_t own_limit(const struct host *h, enum play_limit kind, uint64_t limit)
{
	/* A killer's limit is of a group, or of the machine: what the process had of it. Resident
	 * pages are counted in batches, by every thread. */
	if (kind == PLAY_LIMIT_RESIDENT && !h->request->memory)
		return beside_recorded(h, h->failing, kind) / KILL_EXACT * (KILL_EXACT - 1);
	return limit;
}

/* Runs until the replay has the record's size at the failure. */
static int try_constants(
    struct host *h, enum play_limit kind, uint64_t limit, uint64_t *more, struct err *err)
{
	struct play *play = h->player.play;
	int64_t constant = constant_at(h, first_known(h, kind), kind);

	for (int n = 0; n < TRIES; n++) {
		uint32_t known;
		int rc;

		*more = set(h, kind, constant);
		play->limit = limit + *more;
		rc = host_run(h, h->own, NULL, err);
		if (rc)
			return rc;
		known = last_known(h, kind);
		if (known == PLAN_NONE ||
		    (known == h->failing && llabs(lack(h, known, kind, *more)) < CLOSE_BYTES))
			return 0;
		constant += lack(h, known, kind, *more);
	}
	return 0;
}

int beside_settle(struct host *h, enum play_limit kind, uint64_t limit, struct err *err)
{
	struct play *play = h->player.play;
	uint64_t more = 0;
	int rc = 0;

	if (h->failing == PLAN_NONE && !h->request->memory)
		return 0;
	play->limit_kind = kind;
	play->limit = h->failing == PLAN_NONE ? limit : own_limit(h, kind, limit);
	play->near = play->limit / NEAR;
	/* Of a limit that nobody knows, the record's samples are all that tells; between them it
	 * may have been passed. */
	play->seldom = h->out->limit_kind == LIMIT_NONE && !h->request->memory;
	if (h->failing == PLAN_NONE)
		return 0;
	/* What is resident is the same with and without a limit. */
	if (kind == PLAY_LIMIT_RESIDENT) {
		more = set(h, kind, constant_at(h, h->failing, kind));
		play->limit += more;
	} else {
		rc = try_constants(h, kind, play->limit, &more, err);
	}
	h->out->beside = num_less(play->samples[h->failing].beside, more);
	return rc;
}
