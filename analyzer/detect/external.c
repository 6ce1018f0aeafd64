/*
 * external.c - the limit is below the program's constant need, or others hold the memory: without
 * them the refused request, no larger than earlier ones, would have fit. The program's own memory
 * neither grew nor jumped; or there is hardly any, because the program died while it imported its
 * modules, or because the limit counts threads' stacks.
 */
#include <math.h>

#include "detect/detect.h"
#include "model/heap/swings.h"
#include "model/heap/teeth.h"
#include "util/num.h"
#include "util/tuned.h"

TUNED(uint64_t, BEFORE_PART, 2u, "of less than half, what came since is the larger part");

#define PAGE 4096u /* what a killed process asked for last */

TUNED(double, WORKED_SHARE, 0.8,
    "a server gives back more than nine blocks of ten, loading at most half of them");
TUNED(double, OUT_OF_SERIES, 4.0,
    "blocks of one line differ by a doubling or two; four times as large is a jump of our own");
TUNED(double, NEVER_FITTED, 0.75,
    "a load that was never seen to fit may as well be the program's own doing");
TUNED(unsigned, AS_MUCH_PART, 16u,
    "a sixteenth is the noise of the order in which blocks come and go");
TUNED(double, NEARLY_ALL, 8.0,
    "what goes on rising is the cause itself from an eighth of what lives on");
TUNED(unsigned, SMALL, 128u << 10, "malloc maps larger blocks, which take no more than their size");
TUNED(unsigned, ALLOCATOR_STEP, 1u << 20,
    "Python takes arenas of 1 MiB for the smallest object, malloc 132 KiB for the smallest block");
TUNED(double, GROWTH_TIMES, 1.5,
    "heights that grow from nothing are a third in the first half of what they are in the second");
TUNED(unsigned, TEETH_MIN, 8u, "of fewer, the largest says little of what is usual");
TUNED(unsigned, SWINGS_MIN, 2u, "what came back once may be a change of work");

/* Return the largest block that the call site ever released, since live blocks may be of the
 * refused request's own work. A call site that keeps everything: its largest block. */
static uint64_t largest_before(const struct callsite *p)
{
	uint64_t largest = 0;

	for (uint32_t i = 0; i < p->facts.step_count; i++)
		if (p->facts.steps[i].freed_count && p->facts.steps[i].max > largest)
			largest = p->facts.steps[i].max;
	return largest ? largest : p->facts.largest;
}

/* A request larger than all before is in part the program's own doing. */
static double in_series(const struct scene *scene, double least)
{
	const struct callsites *callsites = scene->callsites;
	uint64_t size = scene_asked(scene), before;

	if (callsites->failed == CALLSITE_NONE)
		return 1;
	before = largest_before(&callsites->list[callsites->failed]);
	return size > before && before ? fmax(least, (double)before / (double)size) : 1;
}

static double of_others(const struct scene *scene, struct finding *f, uint64_t live)
{
	uint64_t held = scene->others.bytes - scene->others.left;
	double strength;

	if (!scene->others.known || !held)
		return 0;
	strength =
	    dominance((double)held, (double)(live + scene->limit.before)) * in_series(scene, 0.5);
	if (strength <= 0)
		return 0;
	f->other_bytes = held;
	f->alone = true;
	f->start_ns = scene->model->run.first_ns ? scene->model->run.first_ns : 1;
	finding_evidence(f, FACT_OTHERS, (double)held);
	finding_evidence(f, FACT_OTHERS_OWN, (double)live);
	if (scene->limit.bytes)
		finding_evidence(f, FACT_DEVICE_MEMORY, (double)scene->limit.bytes);
	return strength;
}

/* True if nothing came there in the last quarter of the run, or of its work. */
static bool is_over(const struct scene *scene, const struct callsite *p)
{
	const struct callsites *callsites = scene->callsites;
	uint64_t run = callsites->moment_ns - scene->model->run.first_ns,
		 serial = callsites->moment_serial;

	return callsites->moment_ns - p->facts.last_ns > run / 4 ||
	       (p->facts.step_count &&
		   p->facts.steps[p->facts.step_count - 1].serial < serial - serial / 4);
}

/* Return the part of `whole` that neither grows nor stays behind, or no longer does. */
static double settled(const struct scene *scene, uint64_t whole)
{
	const struct callsites *callsites = scene->callsites;
	uint64_t rising = 0;

	for (uint32_t i = 0; i < callsites->count; i++) {
		const struct callsite *p = &callsites->list[i];

		if ((p->size.grows || p->survivors.stays) && !is_over(scene, p))
			rising += p->facts.live_bytes;
	}
	return whole ? 1 - fmin(1, (double)rising / (double)whole) : 0;
}

/* Return what malloc held free at the refusal, and may have used before. */
static uint64_t free_lists(const struct scene *scene)
{
	return scene->slack.known ? scene->slack.bytes - scene->slack.arenas : 0;
}

/* Return what malloc holds free between live blocks: the program does not need it. */
static uint64_t holes(const struct scene *scene)
{
	return scene->slack.known ? num_less(scene->slack.bytes, scene->slack.reserved) : 0;
}

/* True if the limit was lowered during the run: the process had been larger than it may be now. Its
 * size shows that; or its live bytes at once, plus the other memory that it has now and had
 * then. */
static bool was_lowered(const struct scene *scene, uint64_t live)
{
	const struct model *m = scene->model;
	const struct failure *f = scene->end.refused;
	uint64_t beside, new = live + free_lists(scene) + (f ? f->stack_bytes : 0);

	if (!scene->limit.bytes || !scene->limit.is_virtual)
		return false;
	beside = scene->limit.usage > new ? scene->limit.usage - new : 0;
	return m->measured.peak_vsize > scene->limit.bytes ||
	       beside + m->peak.bytes > scene->limit.bytes;
}

/* True if most of the peak lived within the first half of all work, so it did not rise just now. */
static bool was_reached(const struct model *m)
{
	uint64_t early = m->peak_trend.used >= PEAK_TREND_MARKS_MIN
			     ? m->peak_trend.marks[m->peak_trend.used / 2]
			     : m->peak.bytes;

	return early >= m->peak.bytes - m->peak.bytes / AS_MUCH_PART;
}

/* Return 0 to 1: by how much what is free, in holes and below, exceeds the request. As much again,
 * and it is the pieces that are too small, not the limit. */
static double beyond(const struct scene *scene, uint64_t size)
{
	uint64_t free = scene->slack.known ? scene->slack.bytes + scene->slack.below : 0;

	return fmin(1, (double)num_less(free, size) / (double)size);
}

/* Judge constant work under a limit that is too low. */
static double of_limit(const struct scene *scene, struct finding *f, uint64_t live)
{
	const struct model *m = scene->model;
	uint64_t size = scene_asked(scene), wanting;
	uint64_t room = num_less(scene->limit.bytes, scene->limit.usage);
	uint64_t trend = peak_trend_added(&m->peak_trend, m->peak.bytes);
	/* A limit of its own is known to within a segment, and no segment was to be had. */
	bool own = scene->limit.own.known;
	/* As much had lived before, or more than there is room for in any order. */
	bool less_room =
	    scene->slack.known && m->peak.bytes > live + scene->slack.bytes + scene->slack.below;
	bool fitted =
	    (scene->space || was_reached(m)) && (live + size <= m->peak.bytes || less_room);
	struct late_rise burst;
	double strength;

	if (!size || (room >= size && !own) ||
	    (scene->space ? scene_churn(scene) < WORKED_SHARE : !was_lowered(scene, live)) ||
	    ((scene->space ? !own && !less_room : !fitted) && scene->slack.known &&
		scene->slack.bytes + scene->slack.below >= size) ||
	    in_series(scene, 0) < 1 / OUT_OF_SERIES)
		return 0;
	/* The next of a series that gets larger is not constant work. */
	if (!scene->space && scene->callsites->failed != CALLSITE_NONE &&
	    scene->callsites->list[scene->callsites->failed].size.grows)
		return 0;
	wanting = own ? size : size - room;
	if (own && wanting > scene->limit.own.kept_back)
		return 0;
	/* That as much fit before says little: growing bytes were at the limit then, too. */
	strength = settled(scene, live) * (fitted ? 1 : NEVER_FITTED * in_series(scene, 0));
	if (own)
		strength *= 1 - beyond(scene, size);
	/* Bytes that came late are not constant work. */
	if (!fitted && (!was_reached(m) || late_rise_find(&m->timeline, m->run.first_ns,
					       scene->callsites->moment_ns, &burst)))
		strength *= 0.5;
	f->steady = true;
	f->trend_bytes = fitted ? 0 : trend;
	f->other_bytes = wanting;
	finding_evidence(f, FACT_NEEDED, (double)(live + size));
	finding_evidence(f, FACT_NEEDED_BEFORE, (double)m->peak.bytes);
	finding_evidence(f, FACT_NEEDED_TREND, (double)f->trend_bytes);
	finding_evidence(f, FACT_LIMIT, (double)scene->limit.bytes);
	if (scene->limit.own.known)
		finding_evidence(f, FACT_OWN_LIMIT, (double)scene->limit.own.kept_back);
	return strength;
}

/* Return the most that lived in the first half of all work, but before the first refusal: later the
 * limit sets the top. 0: unknown. */
static uint64_t lived_early(const struct model *m)
{
	const struct peak_trend *r = &m->peak_trend;
	uint64_t worked = m->refusals.count ? m->refusals.list[0].acquired_before : m->total.bytes;
	uint64_t at = r->stride ? worked / 2 / r->stride : 0;

	return r->used >= PEAK_TREND_MARKS_MIN && at < r->used ? r->marks[at] : 0;
}

/* True if the limit leaves room for the refused request, and for what its allocator takes for it.
 */
static bool has_room(const struct scene *scene)
{
	uint64_t size = scene_asked(scene);

	return num_less(scene->limit.bytes, scene->limit.usage) >=
	       (size < SMALL ? ALLOCATOR_STEP : size);
}

/* Return what requests in flight hold beside the largest of them. */
static uint64_t in_flight_beside(const struct scene *scene)
{
	return scene->held ? scene->held->sum - scene->held->largest : 0;
}

/* Judge constant work under a limit that is just as large as it takes: the peak was reached in the
 * first half of all work, most of it was released since, and hardly anything rises. A process that
 * waits there for a kill, or for the request that does not fit, has no growth to fix; and if few
 * requests work at a time, nothing to do one after the other. */
static double of_footprint(const struct scene *scene, struct finding *f, uint64_t live)
{
	const struct model *m = scene->model;
	uint64_t size =
	    scene->end.refused && !scene_asks_for_thread(scene) ? scene->end.refused->size : 0;
	uint64_t room = num_less(scene->limit.bytes, scene->limit.usage);
	uint64_t asked = scene_asked(scene), more, held;
	uint64_t early = lived_early(m);
	uint64_t beside = in_flight_beside(scene);
	double still;

	if (scene->space || scene->end.presumed || !scene->limit.bytes || !live ||
	    scene_given_back(scene) < WORKED_SHARE ||
	    early < m->peak.bytes - m->peak.bytes / AS_MUCH_PART || (asked && has_room(scene)))
		return 0;
	more = num_less(live + size, m->peak.bytes);
	held = holes(scene);
	still = 1 - NEARLY_ALL * (1 - settled(scene, live) + (double)more / (double)live);
	if (still <= 0)
		return 0;
	f->steady = true;
	f->other_bytes = asked > room ? asked - room : PAGE;
	finding_evidence(f, FACT_LIVE, (double)live);
	finding_evidence(f, FACT_FOOTPRINT_PEAK, (double)m->peak.bytes);
	finding_evidence(f, FACT_FOOTPRINT_EARLY, (double)early);
	finding_evidence(f, FACT_FOOTPRINT_RETURNED, scene_given_back(scene));
	finding_evidence(f, FACT_LIMIT, (double)scene->limit.bytes);
	return still * (1 - dominance((double)held, (double)live)) *
	       fmax(0, 1 - (double)beside / (double)live);
}

/* What the work's rises so far say of the last one, which the limit cut. */
struct rises {
	uint32_t count;
	double usual, highest, last; /* bytes */
	double hole; /* bytes that each leaves free for the next */
	double likely; /* 0 to 1: that the last one is another of the same work */
};

/* Return 0 to 1: by how little the second half's teeth are higher than the first half's. */
static double level(const struct teeth *t)
{
	double grew = 1 - (double)t->early / (double)num_most(t->late, 1);

	return fmax(0, fmin(1, 1 - GROWTH_TIMES * grew));
}

/* The last tooth is larger than all before, as records are among equals, but by a smaller factor
 * than the largest of them stood out from the usual one. */
static struct rises rises_of_teeth(const struct teeth *t, uint64_t need)
{
	struct rises r = {0};
	double stands_out, drift;

	if (t->count < TEETH_MIN || need <= t->last)
		return r;
	r.count = t->count;
	r.usual = r.hole = (double)t->median;
	r.highest = (double)t->highest;
	r.last = (double)(need - t->last);
	r.likely = 1;
	stands_out = r.last / r.highest;
	if (stands_out > 1)
		r.likely = fmax(0, 1 - log(stands_out) / log(r.highest / r.usual));
	/* Half of what rises lies in the second half. */
	drift = (double)num_less(t->last, t->middle) / r.last;
	r.likely *= fmax(0, 1 - 2 * drift) * level(t);
	return r;
}

/* The live bytes swing around a level that they keep, and the last top is farther from the usual
 * one than all before, but less than twice as far. If it is hardly higher than all before, and more
 * lies in holes, these are what came. */
static struct rises rises_of_swings(const struct scene *scene, uint64_t need, uint64_t until)
{
	struct rises r = {0};
	struct swings t;
	double trend;

	swings_find(&scene->model->timeline, until, &t);
	if (t.count < SWINGS_MIN || need <= t.highest || t.usual <= t.low || t.highest <= t.usual)
		return r;
	r.count = t.count;
	r.usual = (double)(t.usual - t.low);
	r.highest = (double)(t.highest - t.low);
	r.last = (double)(need - t.low);
	/* The halves' middles lie half of the time apart, and the last one a quarter before now. */
	trend = (double)num_less(t.late, t.early) / 2;
	r.likely = fmax(0, fmin(1, 2 - (r.last - r.usual) / (r.highest - r.usual))) *
		   fmax(0, 1 - 2 * (double)num_less(t.low, t.low_early) / r.last) *
		   fmax(0, 1 - trend / (double)num_most(num_less(need, t.late), 1)) *
		   fmin(1, (double)(need - t.highest) / (double)num_most(holes(scene), 1));
	return r;
}

/* Judge work that takes now little and now much, under a limit that only the small part fits. */
static double of_varying(const struct scene *scene, struct finding *f, uint64_t live)
{
	uint64_t size = scene_asked(scene), room = num_less(scene->limit.bytes, scene->limit.usage);
	uint64_t beside = in_flight_beside(scene);
	uint64_t until = scene->callsites->moment_ns;
	struct rises r, swings;
	struct teeth teeth;

	if (scene->space || scene->end.presumed || !scene->limit.bytes || (size && has_room(scene)))
		return 0;
	/* Later rises end at the limit: a request that was refused there shows no usual work. */
	if (scene->model->refusals.count)
		until = num_least(until, scene->model->refusals.list[0].time_ns);
	teeth_find(&scene->model->timeline, until, &teeth);
	r = rises_of_teeth(&teeth, live + size);
	swings = rises_of_swings(scene, live + size, until);
	/* Teeth that grow are no swings around a level. */
	if (teeth.count >= TEETH_MIN)
		swings.likely *= level(&teeth);
	if (swings.likely > r.likely)
		r = swings;
	if (!r.count)
		return 0;
	f->steady = true;
	f->form = FORM_VARYING;
	f->other_bytes = size > room ? size - room : PAGE;
	finding_evidence(f, FACT_LIVE, (double)live);
	finding_evidence(f, FACT_TEETH, r.count);
	finding_evidence(f, FACT_TEETH_USUAL, r.usual);
	finding_evidence(f, FACT_TEETH_HIGHEST, r.highest);
	finding_evidence(f, FACT_TEETH_LAST, r.last);
	finding_evidence(f, FACT_LIMIT, (double)scene->limit.bytes);
	return r.likely * settled(scene, live) *
	       (1 - dominance(fmax(0, (double)holes(scene) - r.hole), (double)live)) *
	       fmax(0, 1 - (double)beside / (double)live);
}

/* Judge address space that threads' stacks take and hardly use, while the program holds little
 * else, and does not grow. Holes between its blocks are growth, too: stacks do not make them. */
static double of_stacks(const struct scene *scene, struct finding *f, uint64_t live)
{
	uint64_t stacks = scene->limit.stacks, rest = scene->limit.bytes - stacks;
	uint64_t beside = in_flight_beside(scene);

	if (scene->space || !scene->end.refused || !stacks || stacks >= scene->limit.bytes)
		return 0;
	f->steady = true;
	f->trend_bytes = peak_trend_added(&scene->model->peak_trend, scene->model->peak.bytes);
	f->other_bytes = stacks;
	finding_evidence(f, FACT_STACKS, (double)stacks);
	finding_evidence(f, FACT_LIVE, (double)live);
	finding_evidence(f, FACT_LIMIT, (double)scene->limit.bytes);
	/* What requests hold beside each other is no constant need. */
	return dominance((double)stacks, (double)rest) * settled(scene, rest) *
	       (1 - fmin(1, (double)holes(scene) / (double)rest)) *
	       fmax(0, 1 - (double)beside / (double)rest) * (1 - scene_threads_stay(scene)) *
	       (1 - scene_threads_end(scene));
}

/* Judge a program that never finished its start. */
static double of_start(const struct scene *scene, struct finding *f)
{
	const struct callsites *callsites = scene->callsites;
	uint64_t size = scene_asked(scene), own = 0, imported = 0;
	uint64_t room = num_less(scene->limit.bytes, scene->limit.usage);
	bool importing = scene->end.refused ? callsites->failed_import
					    : callsites->imported_ns > callsites->own_ns;

	if (scene->space || !importing || !scene->limit.bytes || scene_attached(scene))
		return 0;
	for (uint32_t i = 0; i < callsites->count; i++) {
		const struct callsite *p = &callsites->list[i];

		imported += p->facts.imported_bytes;
		if (p->owner != OWNER_RUNTIME)
			own += p->facts.live_bytes - p->facts.imported_bytes;
	}
	f->steady = true;
	f->other_bytes = size > room ? size - room : PAGE;
	finding_evidence(f, FACT_START_IMPORTED, (double)imported);
	finding_evidence(f, FACT_START_OWN, (double)own);
	finding_evidence(f, FACT_LIMIT, (double)scene->limit.bytes);
	return 1 - fmin(1, 2 * (double)own / (double)scene->limit.bytes);
}

/* True if most of the limit was in use before an attach: whether that grew, or is what the program
 * always needs, nobody saw. */
static bool mostly_before(const struct scene *scene)
{
	return scene->limit.before > scene->limit.bytes / BEFORE_PART;
}

int detect_external(const struct scene *scene, struct finding *out)
{
	uint64_t live = scene_live(scene);
	struct finding each[6], *best = &each[0];

	if (!scene->end.failed)
		return DETECT_SILENT;
	for (size_t i = 0; i < 6; i++)
		each[i] = (struct finding){.blame = CALLSITE_NONE};
	each[3].form = FORM_STACKS;
	each[0].strength = of_others(scene, &each[0], live);
	each[1].strength = of_limit(scene, &each[1], live);
	each[2].strength = of_start(scene, &each[2]);
	each[3].strength = of_stacks(scene, &each[3], live);
	each[4].strength = of_footprint(scene, &each[4], live);
	each[5].strength = of_varying(scene, &each[5], live);
	for (size_t i = 1; i < 6 && !mostly_before(scene); i++)
		if (each[i].strength > best->strength)
			best = &each[i];
	*out = *best;
	return out->strength > 0 ? 0 : DETECT_SILENT;
}
