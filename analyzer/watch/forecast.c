#include "watch/forecast.h"

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

void forecast_make(
    const struct forecast_period *periods, size_t count, uint64_t room, struct forecast *out)
{
	size_t all = count - count / (size_t)RECENT_PART, recent = count / (size_t)RECENT_PART;
	struct trend lasting, late;

	*out = (struct forecast){.seconds = INFINITY, .soonest = INFINITY, .latest = INFINITY};
	if (count < PERIODS_MIN)
		return;
	out->state = FORECAST_STEADY;
	/* The first quarter is the warm-up's. */
	if (!trend_of(periods + count - all, all, &lasting) ||
	    !trend_of(periods + count - recent, recent, &late))
		return;
	out->state = FORECAST_GROWS;
	out->rate = fmin(lasting.slope, late.slope);
	out->seconds = (double)room / out->rate;
	out->soonest = (double)room / fmax(lasting.high, late.high);
	lasting.low = fmin(lasting.low, late.low);
	out->latest = lasting.low > 0 ? (double)room / lasting.low : INFINITY;
}
