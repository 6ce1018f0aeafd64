/* judge.c - see judge.h. */
#include "diff/judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/num.h"
#include "util/tuned.h"

TUNED(uint64_t, CHANGE_LEAST, 32u << 10,
    "tables of names, caches of the C library and of an interpreter differ by some pages");
TUNED(uint64_t, CHANGE_WHOLE, 1024u,
    "a leak of one percent is ten times this share of all bytes, and jitter a tenth");
TUNED(uint64_t, CHANGE_OWN, 256u,
    "rounding to pages and the paddings of an allocator are less than this share of a large line");
TUNED(
    double, FALSE_CHANGES, 0.01, "one comparison in a hundred may call a sample's error a change");
TUNED(double, PILES_UP, 0.2,
    "what piles up adds half of its bytes in the second half of the work, and a quarter in the "
    "last; "
    "a cache of entries of random sizes varies by a tenth");
TUNED(uint64_t, REPLACED_PART, 2u, "a line that released half of its blocks replaces them");
TUNED(double, AGAIN_TIMES, 1.5, "half as much again is another round, and not a rest");
TUNED(double, CALLED_TIMES, 1.25, "threads share the work unevenly, by a tenth");
TUNED(double, SIZE_APART, 1.0 / 64, "rounding changes the size of a block by less");
TUNED(
    double, SIZE_SPREAD, 0.5, "inputs of many sizes shift the mean by less than half their spread");
TUNED(double, SIZE_RUNS, 8.0, "several blocks in a row have the size of one input");
TUNED(uint32_t, THREADS_PART, 4u,
    "a pool that starts threads on demand differs by a thread; twice as many were asked for");

/* The second half of the work. The very last part is the end of the program, which releases. */
#define LAST (SERIES_PARTS - 2)
#define HALF (SERIES_PARTS / 2)
#define FIRST (LAST - HALF + 1)

double judge_errors(size_t count)
{
	double z = sqrt(2 * log((double)(count + 1) / FALSE_CHANGES));

	return z > 2 ? z : 2;
}

uint64_t judge_bytes(const struct series *s, enum diff_by by)
{
	return by == DIFF_LIVE ? s->then.live : s->then.total;
}

/* Blocks of a sample are acquired one by one: their sum varies as they do. */
double judge_error(const struct series *s, enum diff_by by)
{
	if (!s->sampled)
		return 0;
	return sqrt(by == DIFF_LIVE ? s->then.variance : s->then.squares);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* What a line held in the second half of the work: the least, middle and largest of its tops. */
struct tops {
	uint64_t least, middle, most;
};

static struct tops tops_of(const struct series *s)
{
	uint64_t list[HALF];

	if (!s->parts)
		return (struct tops){0, 0, s->now.high};
	memcpy(list, s->parts->top + FIRST, sizeof(list));
	qsort(list, HALF, sizeof(*list), by_value);
	return (struct tops){list[0], list[HALF / 2], list[HALF - 1]};
}

uint64_t judge_top(const struct series *s)
{
	return tops_of(s).middle;
}

/* Return which share of its bytes a line has added since that part. */
static double added_since(const struct series *s, uint32_t part)
{
	const struct series_parts *p = s->parts;

	if (!p || p->low[LAST] <= p->low[part])
		return 0;
	return (double)(p->low[LAST] - p->low[part]) / (double)p->low[LAST];
}

static bool piles_up(const struct series *s)
{
	return added_since(s, FIRST) >= PILES_UP && added_since(s, SERIES_LATE) >= PILES_UP / 2;
}

#define NORMAL 1.4826 /* the deviation of a normal variable, for its median distance of 1 */

/* Return the variance of what piled up: how much more it grew in one part than in the next tells
 * chance from a growth that only gets slower. */
static double growth_variance(const struct series *s)
{
	uint64_t apart[LAST];
	double growth[LAST], one;

	if (!piles_up(s))
		return 0;
	for (size_t i = 0; i < LAST; i++)
		growth[i] = (double)s->parts->low[i + 1] - (double)s->parts->low[i];
	for (size_t i = 0; i + 1 < LAST; i++)
		apart[i] = (uint64_t)fabs(growth[i + 1] - growth[i]);
	qsort(apart, LAST - 1, sizeof(*apart), by_value);
	one = NORMAL * (double)apart[(LAST - 1) / 2] / M_SQRT2;
	return LAST * one * one;
}

static double mean_of(const struct series *s)
{
	return s->now.total_count ? (double)s->now.total / (double)s->now.total_count : 0;
}

static double spread_of(const struct series *s)
{
	double mean = mean_of(s), count = (double)s->now.total_count;

	return count > 0 ? sqrt(fmax(0, s->now.squares / count - mean * mean)) : 0;
}

/* Return the variance of the bytes of as many blocks, where blocks are replaced by others of random
 * sizes. What is made once, such as the parts of a model, has sizes that are no chance. */
static double size_variance(const struct series *s, uint64_t bytes)
{
	double spread = spread_of(s), mean = mean_of(s);

	if (s->then.count > s->now.total_count / REPLACED_PART || mean <= 0)
		return 0;
	return (double)bytes / mean * spread * spread;
}

/* By which factors A's bytes may be multiplied and still be the same program's. */
struct factors {
	double least, most;
};

static void stretch(struct factors *f, double by)
{
	if (by > 0) {
		f->least *= fmin(1, by);
		f->most *= fmax(1, by);
	}
}

/* Do several threads, about as many on both sides, share the line? How many of its blocks live at
 * once is then a matter of time: from one to one of each thread. */
static bool overlaps(const struct series *a, const struct series *b)
{
	uint32_t in_a = series_threads(a), in_b = series_threads(b);

	return in_a > 1 && in_b > 1 &&
	       num_most(in_a, in_b) - num_least(in_a, in_b) <= num_most(1, in_a / THREADS_PART);
}

static struct factors factors_of(
    const struct judge *j, const struct series *a, const struct series *b)
{
	struct factors f = {1, 1};

	if (j->one_run)
		return f;
	if (j->by == DIFF_TOTAL || (piles_up(a) && piles_up(b)))
		stretch(&f, j->work);
	if (overlaps(a, b))
		stretch(&f, (double)series_threads(b) / series_threads(a));
	return f;
}

static uint64_t least_change(const struct judge *j, uint64_t a, uint64_t b)
{
	if (j->one_run)
		return j->whole / CHANGE_WHOLE;
	return num_most(
	    CHANGE_LEAST, num_most(j->whole / CHANGE_WHOLE, num_most(a, b) / CHANGE_OWN));
}

/* Judge b against a: more than `most` times it, or less than `least` times, by more than noise. */
static bool differs(double a, double b, struct factors f, double noise, struct judgement *out)
{
	/* Nothing times infinity is no number: compared with it, all is false. */
	double over = b - a * f.most - noise, under = a * f.least - b - noise;

	if (!(over > 0) && !(under > 0))
		return false;
	out->kind = over > 0 ? DIFF_GREW : DIFF_SHRANK;
	out->change = (int64_t)(b - a);
	out->excess = (uint64_t)(over > 0 ? over + noise : under + noise);
	return true;
}

/* Does it acquire more blocks, or fewer, for the same work? */
static bool is_called_otherwise(
    const struct judge *j, const struct series *a, const struct series *b)
{
	double in_a = (double)a->now.total_count, in_b = (double)b->now.total_count;
	double times = in_a > 0 && in_b > 0 ? in_b / in_a : INFINITY;

	if (j->runs > 0)
		times /= j->runs;
	return fabs(log(times)) > log(CALLED_TIMES);
}

static bool judge_tops(const struct judge *j, const struct series *a, const struct series *b,
    double error, struct judgement *out)
{
	struct tops in_a = tops_of(a), in_b = tops_of(b);
	struct factors f = factors_of(j, a, b);
	double own =
	    sqrt(error * error + size_variance(a, in_a.middle) + size_variance(b, in_b.middle));
	double noise = (double)least_change(j, in_a.middle, in_b.middle) + j->errors * own;
	struct judgement all, middle;

	/* Each part of B has more than any part of A, or less. */
	if (!differs(
		(double)in_a.most, (double)in_b.least, (struct factors){0, f.most}, noise, &all) &&
	    !differs((double)in_a.least, (double)in_b.most, (struct factors){f.least, INFINITY},
		noise, &all))
		return false;
	if (!differs((double)in_a.middle, (double)in_b.middle, f, noise, &middle) ||
	    middle.kind != all.kind || (overlaps(a, b) && !is_called_otherwise(j, a, b)))
		return false;
	*out = middle;
	out->noise = (uint64_t)noise;
	out->reason = DIFF_BY_TOP;
	return true;
}

/* The sizes of blocks do not depend on how many there are at the moment. */
static bool judge_sizes(
    const struct judge *j, const struct series *a, const struct series *b, struct judgement *out)
{
	double in_a = mean_of(a), in_b = mean_of(b), spread, error, held, change;
	double noise = (double)least_change(j, a->now.high, b->now.high);

	if (a->sampled || b->sampled || !a->now.total_count || !b->now.total_count)
		return false;
	spread = fmax(spread_of(a), spread_of(b));
	error = spread * sqrt(SIZE_RUNS / (double)a->now.total_count +
			      SIZE_RUNS / (double)b->now.total_count);
	if (fabs(in_b - in_a) <=
	    fmax(SIZE_APART * fmin(in_a, in_b), fmax(SIZE_SPREAD * spread, j->errors * error)))
		return false;
	/* The largest block tells a change of all sizes from another mixture of them. */
	if (fabs((double)b->largest - (double)a->largest) <=
		SIZE_APART * (double)num_least(a->largest, b->largest) ||
	    (b->largest > a->largest) != (in_b > in_a))
		return false;
	held = (double)num_most(judge_top(a), a->then.live);
	change = held * (in_b / in_a - 1);
	if (fabs(change) <= noise)
		return false;
	*out = (struct judgement){change > 0 ? DIFF_GREW : DIFF_SHRANK, DIFF_BY_SIZE,
	    (int64_t)change, (uint64_t)fabs(change), (uint64_t)noise};
	return true;
}

/* Return the largest fall that tells what comes and goes. What was made once and released later was
 * not on its way at the moment; what several threads make, or what is made again, may be. */
static uint64_t fall_of(const struct series *s)
{
	bool again =
	    series_threads(s) > 1 || (double)s->now.total > AGAIN_TIMES * (double)s->then.total;

	return again ? s->now.fall : s->then.fall;
}

/* Does one side hold more than the other ever does? At another moment of its run, a line of the
 * same program may hold what the other run's line holds now. */
static bool is_beyond(
    const struct judge *j, const struct series *a, const struct series *b, double noise)
{
	struct judgement unused;
	struct factors f = factors_of(j, a, b);

	return differs((double)a->now.high, (double)b->then.live, (struct factors){0, f.most},
		   noise, &unused) ||
	       differs((double)a->then.live, (double)b->now.high,
		   (struct factors){f.least, INFINITY}, noise, &unused);
}

/* Is it more only because that run got much further? */
static bool is_further(const struct judge *j, const struct judgement *found)
{
	return !j->one_run && j->runs > 0 &&
	       ((found->kind == DIFF_GREW && j->runs > RUNS_APART) ||
		   (found->kind == DIFF_SHRANK && j->runs < 1 / RUNS_APART));
}

void judge_series(
    const struct judge *j, const struct series *a, const struct series *b, struct judgement *out)
{
	uint64_t in_a = judge_bytes(a, j->by), in_b = judge_bytes(b, j->by);
	double error = hypot(judge_error(a, j->by), judge_error(b, j->by));
	double own = j->one_run ? error : 0, noise;
	struct judgement found = {0};

	if (!j->one_run && j->by == DIFF_LIVE)
		own = sqrt(error * error + growth_variance(a) + growth_variance(b) +
			   size_variance(a, in_a) + size_variance(b, in_b));
	else if (!j->one_run)
		own = sqrt(a->then.squares + b->then.squares);
	noise = (double)least_change(j, in_a, in_b) + j->errors * own;
	if (!j->one_run && j->by == DIFF_LIVE)
		noise += (double)num_most(fall_of(a), fall_of(b)) +
			 (piles_up(a) && piles_up(b) ? j->work_error * (double)num_least(in_a, in_b)
						     : 0);
	if (differs((double)in_a, (double)in_b, factors_of(j, a, b), noise, &found) &&
	    (j->one_run || j->by != DIFF_LIVE || is_beyond(j, a, b, noise))) {
		found.reason = j->by == DIFF_LIVE ? DIFF_BY_HELD : DIFF_BY_ACQUIRED;
	} else if (j->one_run || j->by != DIFF_LIVE ||
		   (!judge_tops(j, a, b, error, &found) && !judge_sizes(j, a, b, &found))) {
		found =
		    (struct judgement){.kind = DIFF_SAME, .change = (int64_t)in_b - (int64_t)in_a};
	}
	if (is_further(j, &found))
		found.kind = DIFF_SAME;
	if (!found.noise)
		found.noise = (uint64_t)noise;
	*out = found;
}

void judge_arenas(
    const struct judge *j, const struct series *a, const struct series *b, struct judgement *out)
{
	uint64_t in_a = judge_bytes(a, j->by), in_b = judge_bytes(b, j->by);
	/* Whether the last objects of a run need one more arena is chance, on both sides. */
	double noise = (double)least_change(j, in_a, in_b) +
		       2 * (double)num_most(a->largest, b->largest) +
		       (j->by == DIFF_LIVE ? (double)num_most(fall_of(a), fall_of(b)) : 0);

	if (j->one_run)
		noise = (double)least_change(j, in_a, in_b);
	*out = (struct judgement){.kind = DIFF_SAME};
	if (!differs((double)in_a, (double)in_b, factors_of(j, a, b), noise, out))
		out->change = (int64_t)in_b - (int64_t)in_a;
	out->reason = j->by == DIFF_LIVE ? DIFF_BY_HELD : DIFF_BY_ACQUIRED;
	out->noise = (uint64_t)noise;
}
