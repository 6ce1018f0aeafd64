/*
 * touch_solve.h - small systems of linear equations with a symmetric, positive matrix: the
 * likeliest parameters of a fit between bounds, and how sure they are.
 */
#ifndef ANALYZER_REPLAY_TOUCH_SOLVE_H
#define ANALYZER_REPLAY_TOUCH_SOLVE_H

#include <stdint.h>

#define TOUCH_SOLVE_MOST 16u

/* Solve a x = b as nearly as 0 <= x <= most allows, by fixing the unknown that exceeds its bound
 * most, one after the other. `a` has n rows of n numbers. */
void touch_solve(const double *a, const double *b, const double *most, uint32_t n, double *x);
void touch_invert(const double *a, uint32_t n, double *out);

#endif
