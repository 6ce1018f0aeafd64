#include "model/callsite/trend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double trend_tau(const double *values, size_t count)
{
	double up = 0, down = 0, ties = 0, pairs;

	if (count < 2)
		return 0;
	for (size_t i = 0; i < count; i++) {
		for (size_t j = i + 1; j < count; j++) {
			if (values[j] > values[i])
				up++;
			else if (values[j] < values[i])
				down++;
			else
				ties++;
		}
	}
	pairs = (double)count * (double)(count - 1) / 2;
	if (pairs - ties <= 0)
		return 0;
	return (up - down) / sqrt(pairs * (pairs - ties));
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double trend_median(const double *values, size_t count)
{
	double sorted[512];

	if (!count)
		return 0;
	if (count > 512)
		count = 512;
	memcpy(sorted, values, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), by_value);
	return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

double trend_fit(const double *x, const double *y, size_t count, double *slope)
{
	double mx = 0, my = 0, xx = 0, yy = 0, xy = 0;

	*slope = 0;
	if (count < 2)
		return 0;
	for (size_t i = 0; i < count; i++) {
		mx += x[i] / (double)count;
		my += y[i] / (double)count;
	}
	for (size_t i = 0; i < count; i++) {
		xx += (x[i] - mx) * (x[i] - mx);
		yy += (y[i] - my) * (y[i] - my);
		xy += (x[i] - mx) * (y[i] - my);
	}
	if (xx <= 0 || yy <= 0)
		return 0;
	*slope = xy / xx;
	return xy / sqrt(xx * yy);
}

bool trend_geometric(const double *values, size_t count)
{
	double steps[512], levels[512];
	size_t n = 0, third;
	double early, late, low, high;

	for (size_t i = 1; i < count && n < 512; i++) {
		if (values[i] <= values[i - 1])
			continue;
		steps[n] = values[i] - values[i - 1];
		levels[n++] = values[i - 1];
	}
	if (n < 4)
		return false;
	third = n / 3 ? n / 3 : 1;
	early = trend_median(steps, third);
	late = trend_median(steps + n - third, third);
	low = trend_median(levels, third);
	high = trend_median(levels + n - third, third);
	if (early <= 0 || low <= 0 || high <= low)
		return false;
	/* With constant increments late/early is 1; with a factor it is high/low. The mean of the
	 * exponents separates the two. */
	return late / early > sqrt(high / low);
}
