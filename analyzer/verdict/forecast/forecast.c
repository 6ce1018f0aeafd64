#include "verdict/forecast/forecast.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "util/tuned.h"

#define BUCKETS 12u
#define PAIRS (BUCKETS * (BUCKETS - 1) / 2)

TUNED(unsigned, PERIODS_MIN, 48u, "a quarter of fewer periods has no twelve buckets");
TUNED(double, RISING_SHARE, 0.8, "a sawtooth or chance lets half of all pairs rise");
TUNED(double, NEWER_SHARE, 0.5, "growth that slows by half ends in a plateau");
TUNED(double, RECENT_PART, 4.0,
    "the last quarter shows whether what grew all along still grows, and what began lately");

TUNED(double, SINCE_TIMES, 2.0,
    "carried on for twice as long as it lasted: a queue that fills has just begun");

TUNED(double, INTERVAL, 2.0,
    "of kept recordings two in three ended within 1.5 times, four in five within twice: a "
    "machine's speed changes");

struct trend {
	double slope, low, high; /* bytes a second: the median of all pairs, and its quartiles */
};

struct bucket {
	double seconds, least;
};

static size_t fill_buckets(
    const struct forecast_period *periods, size_t count, struct bucket buckets[BUCKETS])
{
	for (size_t b = 0; b < BUCKETS; b++) {
		size_t from = b * count / BUCKETS, until = (b + 1) * count / BUCKETS;
		struct bucket *to = &buckets[b];

		*to = (struct bucket){
		    (double)periods[from].time_ns / 1e9, (double)periods[from].least};
		for (size_t i = from + 1; i < until; i++)
			if ((double)periods[i].least < to->least) {
				to->least = (double)periods[i].least;
				to->seconds = (double)periods[i].time_ns / 1e9;
			}
	}
	return BUCKETS;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sort the slopes of all pairs of buckets from `from` to `until` into `out`, and return how many
 * pairs there are, and in *rising how many of them rise. */
static size_t pair_slopes(
    const struct bucket *buckets, size_t from, size_t until, double out[PAIRS], size_t *rising)
{
	size_t count = 0;

	*rising = 0;
	for (size_t i = from; i < until; i++)
		for (size_t k = i + 1; k < until; k++) {
			double took = buckets[k].seconds - buckets[i].seconds;

			if (took <= 0)
				continue;
			out[count] = (buckets[k].least - buckets[i].least) / took;
			*rising += out[count++] > 0;
		}
	qsort(out, count, sizeof(*out), by_value);
	return count;
}

static bool trend_of(const struct forecast_period *periods, size_t count, struct trend *out)
{
	struct bucket buckets[BUCKETS];
	double slopes[PAIRS], older, newer;
	size_t pairs, rising, some;

	fill_buckets(periods, count, buckets);
	pairs = pair_slopes(buckets, 0, BUCKETS / 2, slopes, &some);
	older = pairs ? slopes[pairs / 2] : 0;
	pairs = pair_slopes(buckets, BUCKETS / 2, BUCKETS, slopes, &some);
	newer = pairs ? slopes[pairs / 2] : 0;
	pairs = pair_slopes(buckets, 0, BUCKETS, slopes, &rising);
	if (!pairs || (double)rising < RISING_SHARE * (double)pairs || newer <= 0 ||
	    newer < NEWER_SHARE * older)
		return false;
	*out = (struct trend){
	    fmin(slopes[pairs / 2], newer), slopes[pairs / 4], fmax(slopes[pairs * 3 / 4], newer)};
	out->low = fmin(out->low, out->slope);
	return out->slope > 0;
}

/* Set the numbers from rates of growth, low <= rate <= high, and what they have lasted: `age`
 * seconds of the process, `since` of the growth. */
static void set_growth(struct forecast *out, double rate, double low, double high, double room,
    double age, double since)
{
	low = fmin(low, rate / INTERVAL);
	high = fmax(high, rate * INTERVAL);
	*out = (struct forecast){FORECAST_GROWS, rate, room / rate, room / high,
	    low > 0 ? room / low : INFINITY, INFINITY, since, false};
	out->alarm = out->seconds < age && out->seconds < SINCE_TIMES * since;
}

void forecast_make(
    const struct forecast_period *periods, size_t count, uint64_t room, struct forecast *out)
{
	size_t all = count - count / (size_t)RECENT_PART, recent = count / (size_t)RECENT_PART;
	struct trend lasting, late;

	*out = (struct forecast){
	    .seconds = INFINITY, .soonest = INFINITY, .latest = INFINITY, .work = INFINITY};
	if (count < PERIODS_MIN)
		return;
	out->state = FORECAST_STEADY;
	/* The first quarter is the warm-up's. */
	if (!trend_of(periods + count - all, all, &lasting) ||
	    !trend_of(periods + count - recent, recent, &late))
		return;
	set_growth(out, fmin(lasting.slope, late.slope), fmin(lasting.low, late.low),
	    fmax(lasting.high, late.high), (double)room,
	    (double)(periods[count - 1].time_ns - periods[0].time_ns) / 1e9,
	    (double)(periods[count - 1].time_ns - periods[count - all].time_ns) / 1e9);
}

/* Return what was kept of late, a second, or a byte acquired; a `part`-th of the points is late. */
static double late_rate(const struct forecast_point *points, unsigned part, bool by_work)
{
	const struct forecast_point *now = &points[FORECAST_POINTS - 1];
	const struct forecast_point *then = now - (FORECAST_POINTS - 1) / part;
	double took = by_work ? now->work - then->work : now->seconds - then->seconds;

	return took > 0 ? (now->kept - then->kept) / took : 0;
}

static bool has_slowed(const struct forecast_point *points, bool by_work)
{
	return late_rate(points, (unsigned)RECENT_PART, by_work) <
	       NEWER_SHARE * late_rate(points, 1, by_work);
}

/* Return the median rate of all points, of the newer half, and of the last quarter: a machine that
 * stalls bends one of them. *low, *high: the other two. */
static double median_rate(
    const struct forecast_point *points, bool by_work, double *low, double *high)
{
	double rates[3];

	for (unsigned i = 0; i < 3; i++)
		rates[i] = late_rate(points, 1u << i, by_work);
	qsort(rates, 3, sizeof(*rates), by_value);
	*low = rates[0];
	*high = rates[2];
	return rates[1];
}

void forecast_of_points(const struct forecast_point points[FORECAST_POINTS], double first,
    uint64_t room, struct forecast *out)
{
	double now = points[FORECAST_POINTS - 1].seconds, low, high, rate, by_work;

	*out = (struct forecast){.state = FORECAST_STEADY,
	    .seconds = INFINITY,
	    .soonest = INFINITY,
	    .latest = INFINITY,
	    .work = INFINITY};
	/* In a pause less is kept a second, and of larger requests less a byte; in a plateau both.
	 */
	if (has_slowed(points, false) && has_slowed(points, true))
		return;
	by_work = median_rate(points, true, &low, &high);
	rate = median_rate(points, false, &low, &high);
	if (rate <= 0)
		return;
	set_growth(out, rate, low, high, (double)room, now - first, now - points[0].seconds);
	if (by_work > 0)
		out->work = (double)room / by_work;
}
