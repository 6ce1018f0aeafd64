/*
 * beside.c - the memory beside the replayed requests that the limit counts, too: files, stacks, the
 * interpreter itself. Levels measured by kind show most of it and leave an unknown constant. Runs
 * settle the constant: it starts with its value when the process began, and changes by the
 * difference between the record's size and the replay's at the failure, the moment measured best.
 * Where the replay fails is its own result.
 *
 * The runs have the limit: an allocator takes other ways at refusals.
 */
#include <stdlib.h>

#include "replay/host.h"
#include "util/num.h"
#include "util/tuned.h"

TUNED(int, TRIES, 4, "each try is a whole run, and mostly the first one comes close");
TUNED(uint64_t, CLOSE_BYTES, 65536, "two runs of the same allocator differ by some pages");
/* The part of the limit that a replay may grant beyond, or lend above, what the record shows. */
#define NEAR 64
#define KILL_EXACT 50 /* resident bytes are known to one part in so many */

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
	case LIMIT_CGROUP_HIGH:
	case LIMIT_SYSTEM:
		return PLAY_LIMIT_RESIDENT;
	default: /* no address space holds the request, here neither; or the limit is unknown */
		return PLAY_LIMIT_NONE;
	}
}

/* Returns the memory of others that counts for the limit; 0 for an unknown limit. */
static uint64_t of_others(const struct host *h, const struct recorded_sample *s)
{
	return limit_is_cgroup(h->out->limit_kind)  ? s->group
	       : h->out->limit_kind == LIMIT_SYSTEM ? s->machine
						    : 0;
}

static uint64_t measure(const struct host *h, const struct recorded_sample *s, enum play_limit kind)
{
	uint64_t others = of_others(h, s);

	if (kind == PLAY_LIMIT_AS)
		return s->size;
	if (kind == PLAY_LIMIT_DATA)
		return s->data;
	return others && s->anonymous ? others + s->anonymous : s->resident;
}

static const struct recorded_sample *sample_at(const struct host *h, uint32_t moment)
{
	uint32_t i = h->out->plan.moments.items[moment].recorded;

	return i == PLAN_NONE ? NULL : &h->recorded.samples.items[i];
}

void beside_find_failing(struct host *h, enum play_limit kind)
{
	const struct plan_facts *plan = &h->out->plan;
	bool refused = h->last.size > 0;
	uint64_t most = 0;

	h->failing = PLAN_NONE;
	for (uint32_t i = 0; i < plan->moments.count; i++) {
		const struct plan_moment *m = &plan->moments.items[i];
		const struct recorded_sample *s = sample_at(h, i);
		uint64_t bytes;

		if (!s || (refused && m->time_ns > h->last.time_ns))
			continue;
		bytes = measure(h, s, kind);
		if (bytes && (refused || bytes >= most)) {
			h->failing = i;
			most = bytes;
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

	return s ? measure(h, s, kind) : 0;
}

/* Returns the last measured size of files and stacks, as the limit counts them. */
static uint64_t others(const struct host *h, uint32_t moment, enum play_limit kind, uint64_t before)
{
	const struct recorded_sample *s = sample_at(h, moment);

	if (!s || kind == PLAY_LIMIT_DATA)
		return before;
	if (kind == PLAY_LIMIT_AS)
		return s->beside;
	if (of_others(h, s))
		return of_others(h, s);
	return s->resident && s->anonymous ? num_less(s->resident, s->anonymous) : before;
}

/* Returns the program's own limit where it set another one before the failure; 0: no change. */
static uint64_t own_limit_at(
    const struct host *h, uint32_t moment, enum play_limit kind, uint64_t more)
{
	const struct recorded_sample *s = sample_at(h, moment);
	uint64_t limit = !s ? 0 : kind == PLAY_LIMIT_AS ? s->limit_as : s->limit_data;

	if (kind == PLAY_LIMIT_RESIDENT || h->request->memory || !limit)
		return 0;
	return limit == UINT64_MAX ? limit : limit + more;
}

/* Sets the samples' .beside. Returns how much higher the limit must be, as the player itself is
 * larger. */
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
	for (uint32_t i = 0; i < h->player.samples; i++) {
		samples[i].beside += more;
		samples[i].limit = own_limit_at(h, i, kind, more);
	}
	return more;
}

/* Returns the record's size at the moment less that of the latest run. */
static int64_t lack(const struct host *h, uint32_t moment, enum play_limit kind, uint64_t more)
{
	const struct play_sample *s = &h->player.play->samples[moment];

	return (int64_t)(beside_recorded(h, moment, kind) + more) -
	       (int64_t)(measured(s, kind) + s->beside);
}

static uint64_t all_live(const struct host *h, uint32_t moment)
{
	uint64_t sum = 0;

	for (uint32_t k = 0; k < PLAN_CLASSES; k++)
		sum += h->out->plan.moments.items[moment].live[k];
	return sum;
}

/*
 * Returns the moment to measure by: the failure. But a process at its limit may live on for long
 * from memory that its allocator has, and then has the same size whatever lies beside. If live
 * memory increased on such a plateau, this is the last moment before the plateau.
 */
static uint32_t measured_at(const struct host *h, enum play_limit kind)
{
	uint64_t full = beside_recorded(h, h->failing, kind);
	uint32_t first = h->failing, before = PLAN_NONE;

	for (uint32_t i = h->failing; i-- > 0 && before == PLAN_NONE;) {
		uint64_t then = beside_recorded(h, i, kind);

		if (then && (then + CLOSE_BYTES < full || then > full + CLOSE_BYTES))
			before = i;
		else if (then)
			first = i;
	}
	if (before == PLAN_NONE || all_live(h, h->failing) < all_live(h, first) + CLOSE_BYTES)
		return h->failing;
	return before;
}

/* Returns the latest moment up to `until` that the run reached and the record has a size for. */
static uint32_t last_known(const struct host *h, enum play_limit kind, uint32_t until)
{
	uint32_t found = PLAN_NONE, last = h->player.play->sample;

	for (uint32_t i = 0; i <= last && i <= until && i < h->player.samples; i++)
		if (beside_recorded(h, i, kind))
			found = i;
	return found;
}

/* Returns the constant that the record's size at the moment implies, by the run without a limit. */
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

static uint64_t most_at_end(const struct host *h)
{
	const struct play_sample *samples = h->player.play->samples;
	uint64_t most = 0;

	for (uint32_t i = h->failing; i < h->player.samples; i++)
		if (h->reference[i].resident + samples[i].beside > most)
			most = h->reference[i].resident + samples[i].beside;
	return most;
}

/*
 * Returns the memory in use at the kill. A group had all that it may have. A process had its peak
 * of resident memory, if that came after the last sample; else what the sample says.
 */
static uint64_t at_the_kill(const struct host *h, bool group)
{
	uint64_t seen = beside_recorded(h, h->failing, PLAY_LIMIT_RESIDENT),
		 then = group ? h->out->limit_bytes : h->recorded.end_peak;

	return then > seen ? then : seen;
}

/*
 * Returns a killer's limit: the memory in use at the kill, of the group or the process, less the
 * error of the kernel's counters, which each thread updates in batches; but no less than the record
 * had before and survived.
 */
static uint64_t kill_limit(const struct host *h, uint64_t used)
{
	uint64_t limit = used / KILL_EXACT * (KILL_EXACT - 1), before = h->recorded.peak_before;

	if (used == h->recorded.end_peak && before + (used - before) / 2 > limit)
		limit = before + (used - before) / 2;
	return limit;
}

/* Adds the group's growth after the last sample to the others, evenly over time. The replay has the
 * process's own growth. */
static void grow_others(struct host *h, uint64_t missing)
{
	struct play_sample *samples = h->player.play->samples;
	const struct plan_moment *moments = h->out->plan.moments.items;
	uint64_t from = moments[h->failing].time_ns, until = moments[h->player.samples - 1].time_ns;

	for (uint32_t i = h->failing + 1; i < h->player.samples && until > from; i++)
		samples[i].beside +=
		    (uint64_t)((double)missing * (double)(moments[i].time_ns - from) /
			       (double)(until - from));
}

/* Resident memory is the same with and without a limit: gives the replay as much as the record. */
static void settle_kill(struct host *h, uint64_t limit)
{
	struct play *play = h->player.play;
	bool group =
	    limit_is_cgroup(h->out->limit_kind) && of_others(h, sample_at(h, h->failing)) > 0;
	uint64_t used = at_the_kill(h, group), more;
	int64_t constant = constant_at(h, h->failing, PLAY_LIMIT_RESIDENT), missing;

	more = set(h, PLAY_LIMIT_RESIDENT, constant);
	missing = (int64_t)(used + more) - (int64_t)most_at_end(h);
	if (group && missing > 0)
		grow_others(h, (uint64_t)missing);
	else if (!group && used == h->recorded.end_peak)
		more = set(h, PLAY_LIMIT_RESIDENT, constant + missing);
	play->limit = (h->request->memory ? limit : kill_limit(h, used)) + more;
	h->out->beside = num_less(play->samples[h->failing].beside, more);
}

/*
 * Runs until the replay has the record's size at the failure. The first run, which is seldom close,
 * writes to nothing: address space stays the same. A later run that is close is the one to report.
 */
static int try_constants(
    struct host *h, enum play_limit kind, uint64_t limit, uint64_t *more, struct err *err)
{
	struct play *play = h->player.play;
	uint16_t none = play->touch.none;
	int64_t constant = constant_at(h, first_known(h, kind), kind);
	uint32_t until = measured_at(h, kind);

	for (int n = 0; n < TRIES; n++) {
		uint32_t known;
		int rc;

		*more = set(h, kind, constant);
		play->limit = limit + *more;
		play->touch.none = n == 0 ? 1 : none;
		rc = host_run(h, h->own, NULL, err);
		h->played = !rc && play->touch.none == none;
		play->touch.none = none;
		if (rc)
			return rc;
		known = last_known(h, kind, until);
		if (known == PLAN_NONE ||
		    (known == until && llabs(lack(h, known, kind, *more)) < CLOSE_BYTES))
			return 0;
		constant += lack(h, known, kind, *more);
	}
	return 0;
}

int beside_settle(struct host *h, enum play_limit kind, uint64_t limit, struct err *err)
{
	struct play *play = h->player.play;
	uint64_t more = 0;
	int rc;

	if (h->failing == PLAN_NONE && !h->request->memory)
		return 0;
	h->played = false;
	play->limit_kind = kind;
	play->limit = limit;
	play->near = limit / NEAR;
	play->lend = h->request->memory ? 0 : limit / NEAR;
	if (h->failing == PLAN_NONE)
		return 0;
	/* An unknown limit may have been exceeded between two samples of the record. */
	play->seldom = h->out->limit_kind == LIMIT_NONE && !h->request->memory ? h->failing : 0;
	if (kind == PLAY_LIMIT_RESIDENT) {
		settle_kill(h, limit);
		return 0;
	}
	rc = try_constants(h, kind, limit, &more, err);
	h->out->beside = num_less(play->samples[h->failing].beside, more);
	return rc;
}

uint64_t beside_left(const struct host *h)
{
	const struct play *play = h->player.play;
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i <= play->sample && i < h->player.samples; i++) {
		const struct play_sample *s = &play->samples[i];
		uint64_t limit = s->limit ? s->limit : play->limit,
			 left = num_less(limit, measured(s, play->limit_kind) + s->beside);

		least = left < least ? left : least;
	}
	return least;
}
