/*
 * touch_solve.h - small systems of linear equations whose matrix is symmetric and positive: the
 * likeliest parameters of a fit between bounds, and how sure they are.
 */
#ifndef ANALYZER_REPLAY_TOUCH_SOLVE_H
#define ANALYZER_REPLAY_TOUCH_SOLVE_H

#include <stdint.h>

#define TOUCH_SOLVE_MOST 16u

/* Each of n matrices' rows after the other. x: where a x = b as nearly as 0 <= x <= most allows;
 * found by fixing what is beyond its bound most, one after the other. */
void touch_solve(const double *a, const double *b, const double *most, uint32_t n, double *x);
void touch_invert(const double *a, uint32_t n, double *out);

#endif
