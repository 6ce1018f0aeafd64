/* touch_solve.c - see touch_solve.h. */
#include "replay/touch_solve.h"

#include <stdbool.h>
#include <string.h>

/* Eliminates the free rows and columns. Needs no pivots: the matrix is positive. */
static void eliminate(double m[][TOUCH_SOLVE_MOST], double *b, const bool *free, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		for (uint32_t i = 0; i < n && free[k]; i++) {
			double times = m[i][k] / m[k][k];

			if (!free[i] || i == k)
				continue;
			for (uint32_t j = 0; j < n; j++)
				m[i][j] -= times * m[k][j];
			b[i] -= times * b[k];
		}
	}
}

/* Solves for the free unknowns; the others keep their values in x. */
static void solve_free(const double *a, const double *b, const bool *free, uint32_t n, double *x)
{
	double m[TOUCH_SOLVE_MOST][TOUCH_SOLVE_MOST] = {{0}}, right[TOUCH_SOLVE_MOST] = {0};

	for (uint32_t i = 0; i < n; i++) {
		right[i] = b[i];
		for (uint32_t j = 0; j < n; j++) {
			if (free[j])
				m[i][j] = a[i * n + j];
			else
				right[i] -= a[i * n + j] * x[j];
		}
	}
	eliminate(m, right, free, n);
	for (uint32_t i = 0; i < n; i++)
		if (free[i])
			x[i] = right[i] / m[i][i];
}

void touch_solve(const double *a, const double *b, const double *most, uint32_t n, double *x)
{
	bool free[TOUCH_SOLVE_MOST];

	memset(x, 0, n * sizeof(*x));
	memset(free, true, sizeof(free));
	for (uint32_t fixed = 0; fixed <= n; fixed++) {
		double worst = 0;
		uint32_t which = n;

		solve_free(a, b, free, n, x);
		for (uint32_t i = 0; i < n; i++) {
			double beyond = x[i] < 0 ? -x[i] : x[i] - most[i];

			if (free[i] && beyond > worst) {
				worst = beyond;
				which = i;
			}
		}
		if (which == n)
			return;
		x[which] = x[which] < 0 ? 0 : most[which];
		free[which] = false;
	}
}

void touch_invert(const double *a, uint32_t n, double *out)
{
	bool free[TOUCH_SOLVE_MOST];

	memset(free, true, sizeof(free));
	for (uint32_t k = 0; k < n; k++) {
		double unit[TOUCH_SOLVE_MOST] = {0}, column[TOUCH_SOLVE_MOST] = {0};

		unit[k] = 1;
		solve_free(a, unit, free, n, column);
		for (uint32_t i = 0; i < n; i++)
			out[i * n + k] = column[i];
	}
}
