/*
 * read_in.c - whether what a line keeps is read in, as a model is layer after layer, or left by
 * turns of work: by the rhythm of its sizes, what comes with it, and what comes and goes beside it.
 */
#include "detect/detect.h"

#include <math.h>

#include "util/num.h"
#include "util/sort.h"
#include "util/tuned.h"

TUNED(unsigned, ROUNDS_MIN, 3u, "a rhythm shows after three rounds");
TUNED(double, RHYTHM_SHARE, 0.75, "three quarters of the way from chance to every block in step");
TUNED(
    uint64_t, STEP_BLOCKS, 8u, "a step of fewer blocks holds no whole layer, so its mean differs");
TUNED(uint32_t, STEPS_MIN, 12u, "a dozen differences tell chance from order");
TUNED(uint64_t, NO_ORDER, 100u,
    "a tenth, in thousandths: the median of a squared normal is 0.45 of its mean, and kinds of one "
    "frequency have more than half of the largest variance");
TUNED(double, STAGED_SHARE, 0.72,
    "a staged copy is as large as what is kept, or there are two: two thirds come back, and a "
    "little");
TUNED(unsigned, QUIET_BLOCKS, 8u, "a request makes dozens of blocks for each large one");
TUNED(unsigned, AGAIN_TIMES, 8u, "a pause between two layers is shorter than requests are");
TUNED(unsigned, AGAIN_GAP, 64u, "a few requests make dozens of blocks");
TUNED(unsigned, AGAIN_BLOCKS, 8u, "a model has more than a handful of parameters");
TUNED(unsigned, SIZE_PART, 32u, "a length or a name makes blocks of one kind differ by less");
TUNED(unsigned, COMPANY_PART, 16u, "less than a sixteenth is none of a layer's large parameters");
TUNED(double, WIDTHS_APART, 0.05, "a header for each part, and rounding, add less than 1 in 28");
TUNED(unsigned, NEARLY_PART, 16u, "a sixteenth lives at the moment, or was not recorded");

/* True if the sizes repeat at a fixed distance, layer after layer; requests come in any order. */
static bool in_rhythm(const uint64_t *sizes, uint32_t count)
{
	double chance = 0;

	for (uint32_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < count; k++)
			chance += sizes[i] == sizes[k];
	chance /= (double)count * count;
	for (uint32_t lag = 1; lag <= count / ROUNDS_MIN; lag++) {
		uint32_t same = 0;

		for (uint32_t i = lag; i < count; i++)
			same += sizes[i] == sizes[i - lag];
		if (same >= (count - lag) * (chance + RHYTHM_SHARE * (1 - chance)))
			return true;
	}
	return false;
}

bool scene_in_no_order(const struct callsite *p)
{
	uint64_t differences[CALLSITE_STEPS], sums[CALLSITE_STEPS];
	double mean, most, least = (double)p->facts.largest;
	uint32_t count = 0;

	if (!p->facts.total_count || p->facts.step_count < STEPS_MIN)
		return false;
	for (uint32_t k = 0; k < p->facts.step_count; k++) {
		sums[k] = p->facts.steps[k].bytes;
		least = fmin(least, (double)p->facts.steps[k].min);
	}
	mean = (double)p->facts.total_bytes / (double)p->facts.total_count;
	most = ((double)p->facts.largest - mean) * (mean - least);
	for (uint32_t k = 1; k < p->facts.step_count && most > 0; k++) {
		const struct step *a = &p->facts.steps[k - 1], *b = &p->facts.steps[k];
		uint64_t blocks = num_least(a->count, b->count);
		double difference =
		    (double)b->bytes / (double)b->count - (double)a->bytes / (double)a->count;

		if (blocks >= STEP_BLOCKS)
			differences[count++] =
			    (uint64_t)(1000 * (double)blocks * difference * difference / 2 / most);
	}
	return count >= STEPS_MIN && sort_median(differences, count) > NO_ORDER &&
	       !in_rhythm(sums, p->facts.step_count);
}

/* Return how many sizes recur in sequence among the blocks that a stack keeps; 0: no sequence. */
static uint32_t sizes_of(const struct stack_stats *s)
{
	uint64_t sizes[STACK_STATS_COHORTS];
	uint32_t distinct = 0, count = 0;

	for (uint32_t i = 0, used = stack_stats_used(s); i < used; i++) {
		struct cohort own;
		const struct cohort *c = stack_stats_cohort(s, i, &own);
		uint32_t k = 0;

		if (c->freed_count >= c->count)
			continue;
		/* A cohort of several blocks recurs as a sequence of equal ones. */
		sizes[count] = (c->bytes - c->freed_bytes) / (c->count - c->freed_count);
		while (sizes[k] != sizes[count])
			k++;
		distinct += k == count++;
	}
	return distinct <= count / ROUNDS_MIN && in_rhythm(sizes, count) ? distinct : 0;
}

/* A way to a line, for blocks of one size. */
struct way {
	uint64_t size, blocks, first_ns, last_ns;
};

static struct way way_of(const struct stack_stats *s, uint64_t count)
{
	struct cohort own;
	struct way w = {.size = stack_stats_largest(s), .blocks = count};

	w.first_ns = stack_stats_cohort(s, 0, &own)->time_ns;
	w.last_ns = stack_stats_cohort(s, stack_stats_used(s) - 1, &own)->last_ns;
	return w;
}

/* True if both ways, for different sizes, come equally often, or in a fixed ratio, all the time. */
static bool in_turns_with(const struct way *a, const struct way *b)
{
	uint64_t from = num_most(a->first_ns, b->first_ns);
	uint64_t until = num_least(a->last_ns, b->last_ns);
	uint64_t least = num_least(a->blocks, b->blocks), most = num_most(a->blocks, b->blocks);
	uint64_t took = num_most(a->last_ns - a->first_ns, b->last_ns - b->first_ns), times;

	if (!a->size || a->size == b->size)
		return false;
	times = (most + least / 2) / least;
	return most <= least + 1 ||
	       (least >= ROUNDS_MIN && most + times >= times * least &&
		   most <= times * (least + 1) && until > from && until - from >= took / 4 * 3);
}

/* True if its blocks have several recurring sizes, as in a model's layers. */
static bool sizes_recur(const struct scene *scene, uint32_t callsite)
{
	uint64_t whole = scene->callsites->list[callsite].facts.live_bytes;
	struct way before = {0};

	for (size_t i = 0; i < scene->model->stacks.count; i++) {
		uint64_t live, count;
		const struct stack_stats *s =
		    model_stack_stats(scene->model, stack_table_number(&scene->model->stacks, i),
			scene->callsites->moment, &live, &count);
		uint32_t distinct;
		struct way way;

		if (!stack_stats_used(s) || live < whole / 16 ||
		    callsites_of_stack(scene->callsites, s->kind, s->stack) != callsite)
			continue;
		distinct = sizes_of(s);
		if (distinct >= 2 && live >= whole / 4)
			return true;
		if (distinct != 1)
			continue;
		/* Several ways lead to the line in turns, each for one size. */
		way = way_of(s, count);
		if (in_turns_with(&before, &way))
			return true;
		before = way;
	}
	return false;
}

/* Return the number of blocks since that time that are large for the call site: they may be
 * parameters, or copies on the way to one. */
static uint64_t large_since(const struct scene *scene, const struct callsite *of, uint64_t since_ns)
{
	uint64_t least = of->facts.largest / COMPANY_PART, count = 0;

	for (uint32_t i = 0; i < scene->callsites->count; i++) {
		const struct callsite *p = &scene->callsites->list[i];

		for (uint32_t k = 0; k < p->facts.step_count; k++) {
			const struct step *s = &p->facts.steps[k];

			if (s->time_ns >= since_ns && s->max && s->max >= least)
				count += s->min >= least ? s->count : s->bytes / s->max;
		}
	}
	return count;
}

static bool nearly(uint64_t part, uint64_t whole)
{
	return part + 1 + whole / NEARLY_PART >= whole;
}

/* True if its blocks had one size, beside small ones: an object's own, or a list. */
static bool made_one_size(const struct callsite *p)
{
	for (uint32_t k = 0; k < p->facts.step_count; k++) {
		const struct step *s = &p->facts.steps[k];

		if (s->max < p->facts.largest - p->facts.largest / SIZE_PART ||
		    s->bytes % s->max > s->max / SIZE_PART)
			return false;
	}
	return p->facts.step_count > 0;
}

/* Return how many blocks the line's heaviest stack keeps: an object's own block, or an entry in a
 * list, comes beside each large one by another stack. */
static uint64_t kept_by_heaviest(const struct scene *scene, const struct callsite *p)
{
	uint64_t most = 0, kept = 0;

	for (size_t i = 0; i < scene->model->stacks.count; i++) {
		const struct stack_stats *s = stack_table_number(&scene->model->stacks, i);
		uint64_t live, count;

		if (callsites_of_stack(scene->callsites, s->kind, s->stack) !=
		    (uint32_t)(p - scene->callsites->list))
			continue;
		model_stack_stats(scene->model, s, scene->callsites->moment, &live, &count);
		if (live <= most)
			continue;
		most = live;
		kept = count;
	}
	return kept;
}

/* True if as many bytes, or as many elements of another width, came and went as are kept: then they
 * may be the parts that were read. */
static bool sum_to_kept(uint64_t came, uint64_t kept)
{
	double widths = log2((double)came / (double)kept);

	return fabs(widths - round(widths)) < WIDTHS_APART;
}

/* True if `o` makes several blocks for each of the `kept` ones of `p`, of sizes that vary, one
 * after the other, so that never as much as half a kept block was there at once. Parts of a kept
 * block sum to it, and a copy is whole at some moment; what else comes with each is a turn's work.
 */
static bool works_for_each(const struct callsite *o, const struct callsite *p, uint64_t kept)
{
	uint64_t freed = o->facts.freed_count, each, times;
	double alive, took = (double)num_less(o->facts.last_ns, o->facts.first_ns);

	if (!kept || !freed || took <= 0 || made_one_size(o))
		return false;
	each = (freed + kept / 2) / kept;
	times = each * kept;
	if (each < ROUNDS_MIN ||
	    num_most(freed, times) - num_least(freed, times) > kept / NEARLY_PART + each)
		return false;
	alive = (double)o->facts.life_ns / took * (double)o->facts.total_bytes /
		(double)o->facts.total_count;
	return alive < (double)p->facts.live_bytes / (double)kept / 2 &&
	       !sum_to_kept(o->facts.total_bytes, p->facts.live_bytes);
}

/* True if a line's blocks of one size come and go as often as its own blocks of several sizes come:
 * a copy of each would have its size, so they are the work of as many turns. Or several of them
 * come and go for each, which are no copy of it. */
static bool turns_beside(const struct scene *scene, const struct callsite *p)
{
	uint64_t kept = 0;

	if (callsite_is_uniform(p))
		return false;
	for (uint32_t i = 0; i < scene->callsites->count; i++) {
		const struct callsite *o = &scene->callsites->list[i];
		uint64_t freed = o->facts.freed_count;

		if (!nearly(freed, o->facts.total_count) ||
		    o->facts.largest < p->facts.largest / COMPANY_PART ||
		    o->facts.first_ns > p->facts.last_ns)
			continue;
		if (!kept)
			kept = kept_by_heaviest(scene, p);
		if (made_one_size(o) && (nearly(freed, p->facts.live_count) ||
					    (nearly(freed, kept) && nearly(kept, freed))))
			return true;
		if (works_for_each(o, p, kept))
			return true;
	}
	return false;
}

/* Return about how many blocks other lines made between two moments. */
static double others_between(
    const struct scene *scene, const struct callsite *p, uint64_t from_ns, uint64_t until_ns)
{
	double count = 0;

	for (uint32_t i = 0; i < scene->callsites->count; i++) {
		const struct callsite *o = &scene->callsites->list[i];

		for (uint32_t k = 0; o != p && k < o->facts.step_count; k++) {
			const struct step *s = &o->facts.steps[k];
			uint64_t from = num_most(s->time_ns, from_ns);
			uint64_t until = num_least(s->last_ns, until_ns);

			if (from < until)
				count += (double)s->count * (double)(until - from) /
					 (double)(s->last_ns - s->time_ns);
			else if (from == until)
				count += (double)s->count;
		}
	}
	return count;
}

/* True if a pause lies before that step, longer than between two blocks of one go. A sample numbers
 * only what it has, so there the others' estimated counts tell. */
static bool is_pause(const struct scene *scene, const struct callsite *p, uint32_t k)
{
	const struct step *s = p->facts.steps;
	uint64_t usual = QUIET_BLOCKS, gap;

	if (scene->sample_every)
		return others_between(scene, p, s[k - 1].last_ns, s[k].time_ns) > AGAIN_GAP;
	/* Blocks from one of its own to the next, so far. */
	if (k > 1 && s[k - 2].count)
		usual = (s[k - 1].serial - s[k - 2].serial) / s[k - 2].count + 1;
	gap = num_less(s[k].serial - s[k - 1].serial, s[k - 1].count * usual);
	return gap > AGAIN_GAP && gap > AGAIN_TIMES * usual;
}

/* True if it lies within the step, whose blocks were counted together. `all`: blocks that others
 * made from its first block to its last. */
static bool has_pause(const struct scene *scene, const struct callsite *p, uint32_t k, double all)
{
	const struct step *s = &p->facts.steps[k];
	double here;

	if (s->count < 2 || all <= AGAIN_GAP)
		return false;
	here = others_between(scene, p, s->time_ns, s->last_ns);
	return here > AGAIN_GAP &&
	       here / (double)s->count > AGAIN_TIMES * (all - here) /
					     (double)num_most(p->facts.total_count - s->count, 1);
}

/* Return the step with which the line's blocks began to follow each other the second time, as when
 * a model is loaded again; its first step, if they did once or more often. */
static uint32_t second_time(const struct scene *scene, const struct callsite *p)
{
	uint32_t second = 0;
	uint64_t from = 0;
	double all;

	if (p->facts.total_count < 2 * AGAIN_BLOCKS)
		return 0;
	all = others_between(scene, p, p->facts.first_ns, p->facts.last_ns);
	for (uint32_t k = 0; k + 1 < p->facts.step_count; k++) {
		if (!is_pause(scene, p, k + 1) && !has_pause(scene, p, k, all))
			continue;
		if (second)
			return 0;
		second = k + 1;
	}
	for (uint32_t k = 0; k < second; k++)
		from += p->facts.steps[k].count;
	return from >= AGAIN_BLOCKS && p->facts.total_count - from >= AGAIN_BLOCKS ? second : 0;
}

uint32_t scene_second_go(const struct scene *scene, const struct callsite *p)
{
	uint32_t second = scene->space || scene->work ? 0 : second_time(scene, p);

	return second && scene_is_quiet_since(scene, p->facts.steps[second].time_ns) &&
		       !scene_worked_before(scene, p->facts.first_ns, p->facts.live_bytes, 0)
		   ? second
		   : 0;
}

bool scene_made_again(const struct scene *scene, const struct callsite *p)
{
	return scene_second_go(scene, p) && !scene_is_quiet_since(scene, p->facts.first_ns);
}

/* A loop in the program's outermost function counts as a call, if nothing else runs. */
static bool is_quiet(const struct scene *scene, const struct callsite *p)
{
	const struct step *from;

	if (scene->space || !p->facts.step_count || turns_beside(scene, p))
		return false;
	from = &p->facts.steps[second_time(scene, p)];
	return scene->callsites->moment_serial - from->serial <=
	       QUIET_BLOCKS * (large_since(scene, p, from->time_ns) + 1);
}

bool scene_is_staged(const struct scene *scene, const struct callsite *p)
{
	return (p->call.open != OPEN_CALL_NO || is_quiet(scene, p)) && scene_few_large(scene, p) &&
	       scene_worked_since(scene, p->facts.first_ns) < STAGED_SHARE;
}

bool scene_in_company(const struct scene *scene, const struct callsite *p)
{
	double others = 0;

	for (uint32_t i = 0; i < scene->callsites->count; i++) {
		const struct callsite *o = &scene->callsites->list[i];

		if (o != p && o->facts.largest != p->facts.largest && o->owner != OWNER_RUNTIME &&
		    scene_few_large(scene, o) && !callsite_is_import(o) && !o->size.grows)
			others += survivors_bytes_until(o, p->facts.last_ns) -
				  survivors_bytes_until(o, p->facts.first_ns);
	}
	return others > (double)p->facts.live_bytes / COMPANY_PART;
}

bool scene_is_read_in(const struct scene *scene, uint32_t callsite)
{
	const struct callsite *p = &scene->callsites->list[callsite];

	return scene_is_staged(scene, p) &&
	       ((sizes_recur(scene, callsite) && !scene_sizes_drift(p)) ||
		   (p->call.open != OPEN_CALL_NO && scene_in_company(scene, p)));
}
