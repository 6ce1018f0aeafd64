/*
 * fragmentation.c - enough memory is free, but not in one piece: the holes between live blocks,
 * which the allocator cannot return, plus the free memory below would have held the refused
 * request. On the host, a kill refuses nothing: there, malloc holds more free than live bytes, so
 * the counted memory grew while live bytes did not.
 */
#include <math.h>

#include "detect/detect.h"
#include "util/num.h"
#include "util/tuned.h"

TUNED(double, THREADS_OWN, 0.5,
    "arenas stop at eight for each processor, stacks do not: what fails next is a stack");
TUNED(double, USUAL_PART, 20.0, "a twentieth is free in any allocator");
TUNED(unsigned, AS_MUCH_PART, 16u,
    "a host's allocator may have used a sixteenth more of its free memory at the peak");
TUNED(double, PIECES_FEW, 3.0,
    "eight times the request may lie in pieces by chance, 64 times does not");
TUNED(double, AS_MUCH_AGAIN, 2.0, "half of what a device's allocator holds is then in holes");
TUNED(double, TREND_TIMES, 2.0,
    "holes twice as large as what came with a trend would have held it as long again");
TUNED(unsigned, MORE_PART, 32u, "requests of one kind vary, and a sample's sum is an estimate");
TUNED(unsigned, BEFORE_PART, 8u, "an eighth of the run is no step of the same rise");

/* Return how far live bytes rose above their maximum in the first half of the run, by work or by
 * time, whichever is more: a single burst is no trend, even if it goes on. */
static uint64_t risen(const struct scene *scene, uint64_t live)
{
	const struct model *m = scene->model;
	const struct timeline *t = &m->timeline;
	uint64_t half = m->run.first_ns + (scene->callsites->moment_ns - m->run.first_ns) / 2,
		 before = 0;

	for (uint32_t i = 0; i < t->used && (uint64_t)i << t->shift <= half; i++)
		before = num_most(before, t->periods[i].most);
	if (m->peak_trend.used >= PEAK_TREND_MARKS_MIN)
		before = num_least(before, m->peak_trend.marks[m->peak_trend.used / 2]);
	return num_less(live, before);
}

/* Return how well the free memory would have held the request; 0: not at all, or memory in pieces
 * was not the problem. */
static double would_hold(const struct scene *scene, uint64_t size, uint64_t live)
{
	const struct scene_slack *slack = &scene->slack;
	double enough;

	if (slack->below >= size)
		return 0;
	/* In one piece the holes would have held this request, but not the earlier peak. */
	if (scene->model->peak.bytes >
	    live + slack->bytes + slack->below + (scene->space ? 0 : slack->bytes / AS_MUCH_PART))
		return 0;
	enough = (double)(slack->bytes + slack->below) / (double)size;
	if (enough < 1)
		return 0;
	/* Twice the request is no near miss. If the holes alone are less, the level below
	 * helped. */
	return (0.7 + 0.3 * fmin(1, log2(enough))) *
	       (scene->space ? fmin(1, (double)slack->bytes / (double)size) : 1);
}

/* Return how scattered the free memory is, when no piece would have held the request: a buffer that
 * is copied into a larger one leaves a single hole of about its size. */
static double in_pieces(const struct scene_slack *slack, uint64_t size)
{
	uint64_t holes = num_less(slack->bytes, slack->reserved + slack->arenas);

	if (!size || holes <= size || slack->largest >= size)
		return 0;
	return fmax(0, fmin(1, (log2((double)holes / (double)size) - PIECES_FEW) / PIECES_FEW));
}

/* Return 0 to 1: by how much the holes outweigh what a trend added. Reserved room is what the trend
 * grows into, so all that it added counts against that. */
static double beyond_trend(const struct scene_slack *slack, uint64_t trend)
{
	if (slack->reserved > slack->bytes / 2)
		return fmax(0, 1 - (double)trend / (double)slack->bytes);
	return dominance((double)slack->bytes, TREND_TIMES * (double)trend);
}

static void evidence(const struct scene *scene, struct finding *f, uint64_t size, uint64_t live)
{
	const struct scene_slack *slack = &scene->slack;

	finding_evidence(f, FACT_HOLE_BYTES, (double)(slack->bytes - slack->reserved));
	finding_evidence(f, FACT_HOLES, (double)slack->holes);
	finding_evidence(f, FACT_HOLE_LARGEST, (double)slack->largest);
	finding_evidence(f, FACT_LIVE, (double)live);
	finding_evidence(f, FACT_HOLE_TREND, (double)f->trend_bytes);
	if (slack->reserved)
		finding_evidence(f, FACT_HOLE_RESERVED, (double)slack->reserved);
	if (slack->arenas)
		finding_evidence(f, FACT_HOLE_ARENAS, (double)slack->arenas);
	if (size) {
		finding_evidence(f, FACT_HOLE_REFUSED, (double)size);
		finding_evidence(f, FACT_HOLE_BELOW, (double)slack->below);
	}
}

/* True if more than that had lived, and fitted, some time before. */
static bool is_less(const struct scene *scene, uint64_t bytes)
{
	const struct model *m = scene->model;

	return bytes <= m->peak.bytes - m->peak.bytes / MORE_PART;
}

/* True if the peak was no step of the rise that the memory ended with. */
static bool peaked_before(const struct scene *scene)
{
	const struct model *m = scene->model;
	uint64_t run = num_less(scene->callsites->moment_ns, m->run.first_ns);

	return num_less(scene->callsites->moment_ns, m->peak.time_ns) > run / BEFORE_PART;
}

/* True if as much had lived, and fitted, some time before; or more than that, at any time, if what
 * was released since is all that is free now. */
static bool had_lived(const struct scene *scene, uint64_t live, uint64_t size)
{
	const struct model *m = scene->model;
	bool less = live + size <= m->peak.bytes - m->peak.bytes / MORE_PART;

	if (live + size > m->peak.bytes)
		return false;
	/* A device's allocator has given back all that lay in whole segments. */
	return (less && (scene->space || m->peak.bytes - live >= scene->slack.bytes)) ||
	       ((less || scene->end.refused) && peaked_before(scene));
}

int detect_fragmentation(const struct scene *scene, struct finding *out)
{
	const struct scene_slack *slack = &scene->slack;
	uint64_t size = scene_asked(scene);
	uint64_t live = scene_live(scene) - slack->arenas;
	struct finding f = {.strength = 1};
	bool lived;

	if (!slack->known || !scene->end.failed || (!size && scene->space) ||
	    slack->bytes < (live + slack->bytes) / 100)
		return DETECT_SILENT;
	if (size)
		f.strength = would_hold(scene, size, live);
	lived = had_lived(scene, live, size);
	/* What swings on a trend was at its top a moment ago. */
	if (!lived || (scene->space && !peaked_before(scene)))
		f.trend_bytes =
		    peak_trend_added(&scene->model->peak_trend, scene->model->peak.bytes);
	/* Address space reserved to grow into was there from the start, and growth fills it. */
	if (slack->reserved > slack->bytes / 2 && risen(scene, live) > f.trend_bytes)
		f.trend_bytes = risen(scene, live);
	/* Arenas count as live, but their used part did not grow. */
	f.trend_bytes = num_less(f.trend_bytes, slack->arenas + slack->arenas_steady);
	/* Holes as large as what lives would have held as much again. */
	if (scene->space)
		f.trend_bytes = (uint64_t)((double)f.trend_bytes *
					   fmax(0, 1 - AS_MUCH_AGAIN * (double)slack->bytes /
							   (double)(live + slack->bytes)));
	/* Malloc always holds something free, most of all where live bytes grow by copies; a device
	 * has holes only after it had to ask for more, and rounding leaves some. */
	if (scene->space)
		f.strength *=
		    fmin(1, (double)slack->bytes * USUAL_PART / (double)(live + slack->bytes));
	else
		f.strength *= lived && is_less(scene, live + size)
				  ? 1
				  : fmax(dominance((double)slack->bytes,
					     (double)(live + scene->limit.stacks)),
					in_pieces(slack, size)) *
					beyond_trend(slack, f.trend_bytes);
	/* A kill counts all that is resident: holes that are little beside the rest are no cause.
	 */
	if (!size)
		f.strength *= dominance((double)slack->bytes,
		    (double)num_less(scene->limit.usage, live + slack->bytes));
	/* Each thread takes an arena with its stack: fewer threads, and both are small. */
	f.strength *= 1 - THREADS_OWN * fmax(scene_threads_stay(scene), scene_threads_end(scene));
	if (f.strength <= 0)
		return DETECT_SILENT;
	f.slack_bytes = slack->bytes;
	f.steady = true;
	f.coalesced = true;
	f.blame = slack->pinned_by;
	evidence(scene, &f, size, live);
	*out = f;
	return 0;
}
