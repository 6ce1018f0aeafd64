/* outcome.c - what came of a run: where it failed, and whether that is where the record did. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "replay/host.h"
#include "util/num.h"

#define ROUNDS 8
#define TOLD 0.1 /* of the replay's curve: so near are its least and its most where it is told */
#define KILL_NEAR 20 /* a kill within this part of the limit is the same one */
/* What asks for memory unseen, the loader or a thread's stack, asks for some megabytes: where less
 * than this part of a limit was left, the verdict takes that for the failure. */
#define NEXT_TO 16

/* Thread and number of an operation, from its place in the plan. */
static bool operation_of(struct host *h, uint64_t op, uint32_t *thread, uint64_t *n)
{
	struct plan_header header;
	struct plan_part part;
	bool found = false;
	uint64_t at;

	if (fseek(h->plan, 0, SEEK_SET) || fread(&header, sizeof(header), 1, h->plan) != 1)
		return false;
	/* The part that it is in, then the thread's parts before it. */
	for (int pass = 0; pass < 2; pass++) {
		if (fseek(h->plan, (long)header.parts_at, SEEK_SET))
			return false;
		for (uint32_t i = 0; i < header.parts; i++) {
			if (fread(&part, sizeof(part), 1, h->plan) != 1)
				return false;
			at = op - part.first;
			if (pass == 0 && op >= part.first && at < part.count) {
				*thread = part.thread;
				*n = at;
				found = true;
				break;
			}
			if (pass == 1 && part.first + part.count <= op && part.thread == *thread)
				*n += part.count;
		}
		if (!found)
			return false;
	}
	return true;
}

/* A refusal that the record does not have. */
static int find_refused(
    struct host *h, const struct play *play, struct replay_point *out, struct err *err)
{
	uint32_t thread = 0;
	uint64_t n = 0;
	struct event e;
	int rc;

	if (!operation_of(h, play->op, &thread, &n))
		return err_set(err, -EIO, "cannot read the replay's plan again");
	rc = plan_find(
	    h->feed, &h->recorded, &h->last, &h->out->plan, thread, n, &e, &out->event, err);
	if (rc != 1)
		return rc;
	out->time_ns = e.time_ns;
	replay_stack(out, &h->feed, e.stack);
	return 0;
}

/* The record has no request that was refused, but ended with next to nothing left: so does this. */
static bool ends_at_limit(const struct host *h)
{
	const struct play *play = h->player.play;

	return play->state == PLAY_DONE && h->out->original.failed && !h->last.size &&
	       (play->limit_kind == PLAY_LIMIT_AS || play->limit_kind == PLAY_LIMIT_DATA) &&
	       beside_left(h) <= play->limit / NEXT_TO;
}

static int find_point(struct host *h, struct replay_row *row, struct err *err)
{
	const struct play *play = h->player.play;
	const struct replay_point *original = &h->out->original;
	struct replay_point *p = &row->failed;
	const struct plan_moment *m;

	*p = (struct replay_point){.failed = true, .kind = "host-alloc", .space = "host"};
	p->requested = play->requested;
	switch ((enum play_state)play->state) {
	case PLAY_REFUSED_LAST:
		*p = *original;
		p->requested = play->requested;
		return 0;
	case PLAY_REFUSED:
		return find_refused(h, play, p, err);
	case PLAY_KILLED:
		h->killed = play->sample;
		m = &h->out->plan.moments.items[play->sample];
		p->kind = failure_kind_name(FAILURE_OOM_KILL);
		p->time_ns = m->time_ns;
		p->event = m->event;
		return 0;
	default:
		p->failed = ends_at_limit(h);
		if (p->failed)
			*p = *original;
		return 0;
	}
}

int outcome_take_row(struct host *h, const struct play_allocator *allocator, struct err *err)
{
	const struct play *play = h->player.play;
	struct replay_row *row = &h->out->rows[h->out->row_count++];
	uint32_t reached = play->state == PLAY_STARTING ? 0 : play->sample + 1;

	*row = (struct replay_row){.name = allocator->name,
	    .state = (enum play_state)play->state,
	    .granted = play->granted_last,
	    .later = play->later,
	    .ops = h->out->plan.ops,
	    .ns = play->ns};
	for (uint32_t i = 0; i < reached && i < h->player.samples; i++) {
		const struct play_sample *s = &play->samples[i];
		uint64_t resident = num_less(s->resident, play->base_resident);

		if (s->live > row->peak_live)
			row->peak_live = s->live;
		if (resident > row->peak_resident) {
			row->peak_resident = resident;
			row->touched = s->touched;
			row->held = s->held;
			row->used = s->used;
		}
		row->end_live = s->live;
		row->end_resident = resident;
	}
	return find_point(h, row, err);
}

/* Anonymous resident bytes at the moment, recorded and replayed; false: not measured, or not in
 * that half. */
static bool curves_at(const struct host *h, uint32_t moment, bool second, double *was, double *is)
{
	const struct plan_moment *m = &h->out->plan.moments.items[moment];

	if (m->recorded == PLAN_NONE || (m->time_ns > h->out->touch.until_ns) != second)
		return false;
	*was = (double)h->recorded.samples.items[m->recorded].anonymous;
	*is = (double)num_less(h->reference[moment].resident, h->reference_base);
	return *was > 0;
}

/* What the program has beside, by the first half: as in touch.c what is measured above counts more
 * than what is below. False: nothing was measured. */
static bool base_of(const struct host *h, double *base)
{
	double was, is;

	*base = 0;
	for (int n = 0; n < ROUNDS; n++) {
		double sum = 0, weights = 0;

		for (uint32_t i = 0; i < h->out->plan.moments.count; i++) {
			double w;

			if (!curves_at(h, i, false, &was, &is))
				continue;
			w = was - is > *base ? TOUCH_ABOVE : 1;
			sum += w * (was - is);
			weights += w;
		}
		if (weights <= 0)
			return false;
		*base = sum / weights;
	}
	return true;
}

void outcome_compare_curves(struct host *h)
{
	double base, was, is, recorded = 0, replayed = 0, least = 0, most = 0;
	const struct touch_fit *fit = &h->out->touch;
	const struct plan_moment *moments = h->out->plan.moments.items;

	if (!h->out->touch.until_ns || h->request->no_touch || !base_of(h, &base))
		return;
	for (uint32_t i = 0; i < h->out->plan.moments.count; i++) {
		if (!curves_at(h, i, true, &was, &is))
			continue;
		recorded = fmax(recorded, was);
		replayed = fmax(replayed, base + is);
		least = fmax(least, base + is - (double)touch_doubt(fit, &moments[i], false));
		most = fmax(most, base + is + (double)touch_doubt(fit, &moments[i], true));
	}
	if (recorded <= 0)
		return;
	h->out->curve.known = true;
	h->out->curve.recorded = (uint64_t)recorded;
	h->out->curve.replayed = (uint64_t)replayed;
	h->out->curve.least = (uint64_t)least;
	h->out->curve.most = (uint64_t)most;
	h->out->curve.told =
	    replayed - least <= TOLD * replayed && most - replayed <= TOLD * replayed;
	h->out->curve.deviation = (replayed - recorded) / recorded;
}

bool outcome_is_same(const struct host *h)
{
	const struct replay_point *a = &h->out->original, *b = &h->out->replayed;
	const struct replay_row *row = &h->out->rows[0];
	uint64_t limit = h->player.play->limit, near = 0, then;

	if (!a->failed || !b->failed)
		return a->failed == b->failed;
	if (row->state == PLAY_REFUSED_LAST || row->state == PLAY_DONE)
		return true;
	/* Another request of the same line, when there is next to nothing left for it. */
	if (row->state == PLAY_REFUSED)
		return b->stack == a->stack && b->event >= a->event - a->event / KILL_NEAR;
	/* Or a little earlier on the same plateau. */
	for (uint32_t i = 0; i <= h->killed; i++)
		if ((then = beside_recorded(h, i, PLAY_LIMIT_RESIDENT)))
			near = then;
	return row->state == PLAY_KILLED && !strcmp(a->kind, b->kind) &&
	       (b->event >= a->event - a->event / KILL_NEAR ||
		   (near && near >= limit - limit / KILL_NEAR));
}
