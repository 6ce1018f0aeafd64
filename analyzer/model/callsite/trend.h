/*
 * trend.h - statistics of short series (up to some hundred values): do they rise, how, and together
 * with which other series? Pure functions of their arguments.
 */
#ifndef ANALYZER_MODEL_TREND_H
#define ANALYZER_MODEL_TREND_H

#include <stdbool.h>
#include <stddef.h>

/* Return Kendall's tau-b of the values against their order: 1 rises throughout, 0 no trend (also of
 * equal values), -1 falls throughout. 0 for fewer than two values. */
double trend_tau(const double *values, size_t count);

/* Return the median; of more than 512 values, of the first 512. */
double trend_median(const double *values, size_t count);

/* Return Pearson's correlation of y with x, and the slope of the least-squares line. 0 when x or y
 * does not vary. */
double trend_fit(const double *x, const double *y, size_t count, double *slope);

/* True when the increments of a rising series grow with its values, like the capacity of a
 * container that is enlarged by a factor. False when they stay the same, like those of a buffer
 * that is rebuilt each turn. */
bool trend_geometric(const double *values, size_t count);

#endif
