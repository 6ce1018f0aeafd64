/* outcome.c - the outcome of a run: where it failed, and whether the record failed there. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "replay/host.h"
#include "util/num.h"
#include "util/tuned.h"

TUNED(double, TOLD, 0.1, "bounds of the curve further apart than a tenth predict nothing useful");
TUNED(uint64_t, PEAK_ROSE, 1000, "a thousandth of the peak: less is the counters' own error");
TUNED(uint64_t, KILL_NEAR, 20,
    "a twentieth of the limit: the kernel reclaims what it can before it kills");
TUNED(uint64_t, NEXT_TO, 16,
    "unrecorded requests (the loader, a thread's stack) take some MiB; the verdict takes a limit "
    "with less than a sixteenth left for reached");

static bool operation_of(struct host *h, uint64_t op, uint32_t *thread, uint64_t *n)
{
	struct plan_header header;
	struct plan_part part;
	bool found = false;
	uint64_t at;

	if (fseek(h->plan, 0, SEEK_SET) || fread(&header, sizeof(header), 1, h->plan) != 1)
		return false;
	/* The part that has the operation, then the thread's parts before it. */
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

/* Finds the recorded request that only the replay refused. */
static int find_refused(
    struct host *h, const struct play *play, struct replay_point *out, struct err *err)
{
	struct plan_origin origin = {.n = 0};
	int rc;

	if (!operation_of(h, play->op, &origin.thread, &origin.n))
		return err_set(err, -EIO, "cannot read the replay's plan again");
	rc = plan_find(&h->source, &h->out->plan, &origin, err);
	out->event = origin.index;
	if (rc != 1)
		return rc;
	out->time_ns = origin.event.time_ns;
	replay_stack(out, &h->feed, origin.event.stack);
	return 0;
}

/* Returns whether the replay, like the record, ended next to its limit without a refused
 * request. */
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
	    .lent = play->lent,
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

/* The second half of the curves. */
struct curves {
	double recorded; /* the peak */
	bool at_most; /* the peak is the kernel's, not the samples' */
	uint64_t at; /* the moment of the replay's peak, among those looked at */
	double replayed, settled; /* settled: the peak without bytes that may be unwritten yet */
	double files; /* resident bytes of files at that moment */
	double unwritten; /* bytes that may be unwritten when the record ends */
};

/* Takes the peak of resident memory if it rose in the second half. False: it did not, or the bytes
 * of files at the peak are too uncertain. */
static bool rose(const struct host *h, struct curves *c)
{
	uint64_t before = 0, least = UINT64_MAX, widest = 0, most = h->recorded.most;

	for (size_t i = 0; i < h->recorded.samples.count; i++) {
		const struct recorded_sample *s = &h->recorded.samples.items[i];

		if (s->time_ns <= h->out->touch.until_ns) {
			before = s->peak > before ? s->peak : before;
		} else if (s->resident) {
			least = num_least(least, s->of_files);
			widest = s->of_files > widest ? s->of_files : widest;
		}
	}
	if (!before || most <= before + before / PEAK_ROSE + 65536 || most <= widest)
		return false;
	most -= widest;
	if ((double)(widest - least) > TOLD / 2 * (double)most || (double)most < c->recorded)
		return false;
	c->recorded = (double)most;
	return true;
}

static void survey(const struct host *h, bool all, struct curves *c)
{
	const struct touch_fit *fit = &h->out->touch;
	double files = 0;

	c->replayed = c->settled = c->unwritten = 0;
	for (uint32_t i = 0; i < h->out->plan.moments.count; i++) {
		const struct plan_moment *m = &h->out->plan.moments.items[i];
		const struct recorded_sample *s =
		    m->recorded == PLAN_NONE ? NULL : &h->recorded.samples.items[m->recorded];
		bool looked = s && s->anonymous && !s->unsure;
		double is;

		if (s && s->resident)
			files = (double)s->of_files;
		c->unwritten = (double)m->young;
		if (m->time_ns <= fit->until_ns || (!looked && !all))
			continue;
		is = (double)num_less(h->reference[i].resident, h->reference_base) +
		     touch_beside(fit, files);
		c->settled = fmax(c->settled, is - (double)m->young);
		if (looked && !all)
			c->recorded = fmax(c->recorded, (double)s->anonymous);
		if (is <= c->replayed)
			continue;
		c->replayed = is;
		c->at = i;
		c->files = files;
	}
}

void outcome_compare_curves(struct host *h)
{
	const struct touch_fit *fit = &h->out->touch;
	const struct plan_moment *at;
	struct curves c = {0};
	double late, least, most;

	if (!fit->until_ns || h->request->no_touch)
		return;
	survey(h, false, &c);
	if (c.recorded <= 0)
		return;
	c.at_most = rose(h, &c);
	if (c.at_most)
		survey(h, true, &c);
	/* The peak includes memory that is written to later, but for the record's end. */
	late = c.at_most ? c.unwritten : c.replayed - c.settled;
	at = &h->out->plan.moments.items[c.at];
	least = c.replayed - fmin(c.replayed, touch_doubt(fit, at, c.files, false) + late);
	most = c.replayed + touch_doubt(fit, at, c.files, true);
	h->out->curve.known = true;
	h->out->curve.recorded = (uint64_t)c.recorded;
	h->out->curve.replayed = (uint64_t)c.replayed;
	h->out->curve.least = (uint64_t)least;
	h->out->curve.most = (uint64_t)most;
	h->out->curve.told =
	    c.replayed - least <= TOLD * c.replayed && most - c.replayed <= TOLD * c.replayed;
	h->out->curve.deviation = (c.replayed - c.recorded) / c.recorded;
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
	/* The same line may be refused at another request, next to the limit. */
	if (row->state == PLAY_REFUSED)
		return b->stack == a->stack && b->event >= a->event - a->event / KILL_NEAR;
	/* A kill may come a little earlier on the same plateau. */
	for (uint32_t i = 0; i <= h->killed; i++)
		if ((then = beside_recorded(h, i, PLAY_LIMIT_RESIDENT)))
			near = then;
	return row->state == PLAY_KILLED && !strcmp(a->kind, b->kind) &&
	       (b->event >= a->event - a->event / KILL_NEAR ||
		   (near && near >= limit - limit / KILL_NEAR));
}
