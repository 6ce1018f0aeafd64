/* scaling.c - least squares of relative errors: each pair weighs 1 / size^2. See scaling.h. */
#include "model/callsite/scaling.h"

#include <math.h>
#include <stdbool.h>

#include "util/tuned.h"

TUNED(double, OFF_EXACT, 0.02, "an allocator rounds large blocks up by no more");
TUNED(double, OFF_MOST, 0.25, "from a quarter on a curve predicts nothing");
TUNED(double, EXPLAINS, 0.75,
    "a curve that explains less of the variance is no better than the mean");
TUNED(double, APART, 1.05, "between lengths that are nearer rounding hides the slope");
TUNED(double, SQUARE_FROM, 1.75,
    "the exponent between two lengths: nearer to 2 than to 1, with a linear part beside it");

void scaling_add(struct scaling_pairs *p, double length, double size)
{
	double w = 1 / (size * size), at = w;
	bool is_new = true;

	p->n++;
	p->weight += w;
	for (int k = 0; k < 4; k++) {
		at *= length;
		p->t[k] += at;
	}
	p->y[0] += w * size;
	p->y[1] += w * size * length;
	p->y[2] += w * size * length * length;
	for (uint32_t i = 0; i < p->different && is_new; i++)
		is_new = length > p->lengths[i] * APART || length < p->lengths[i] / APART;
	if (!is_new || p->different == SCALING_LENGTHS)
		return;
	p->lengths[p->different] = length;
	p->sizes[p->different++] = size;
}

/* Return the mean square of the curve's relative errors. */
static double off(const struct scaling_pairs *p, double a, double b, double c)
{
	double sum = p->n - 2 * (a * p->y[0] + b * p->y[1] + c * p->y[2]) + a * a * p->weight +
		     b * b * p->t[1] + c * c * p->t[3] +
		     2 * (a * b * p->t[0] + a * c * p->t[1] + b * c * p->t[2]);

	return sqrt(fmax(0, sum / p->n));
}

static bool line(const struct scaling_pairs *p, struct scaling_fit *f)
{
	double d = p->weight * p->t[1] - p->t[0] * p->t[0];

	if (d <= p->weight * p->t[1] * 1e-9)
		return false;
	f->b = (p->weight * p->y[1] - p->t[0] * p->y[0]) / d;
	f->a = (p->y[0] - f->b * p->t[0]) / p->weight;
	f->off = off(p, f->a, f->b, 0);
	return f->b > 0;
}

/* By Cramer's rule. */
static bool parabola(const struct scaling_pairs *p, struct scaling_fit *f)
{
	const double s[5] = {p->weight, p->t[0], p->t[1], p->t[2], p->t[3]};
	double m0 = s[2] * s[4] - s[3] * s[3], m1 = s[1] * s[4] - s[2] * s[3],
	       m2 = s[1] * s[3] - s[2] * s[2], d = s[0] * m0 - s[1] * m1 + s[2] * m2;

	if (d <= s[0] * s[2] * s[4] * 1e-9)
		return false;
	f->a = (p->y[0] * m0 - p->y[1] * m1 + p->y[2] * m2) / d;
	f->b = (-p->y[0] * m1 + p->y[1] * (s[0] * s[4] - s[2] * s[2]) -
		   p->y[2] * (s[0] * s[3] - s[1] * s[2])) /
	       d;
	f->c = (p->y[0] * m2 - p->y[1] * (s[0] * s[3] - s[1] * s[2]) +
		   p->y[2] * (s[0] * s[2] - s[1] * s[1])) /
	       d;
	f->off = off(p, f->a, f->b, f->c);
	return f->c > 0;
}

/* For two lengths: take the nearer of the curves with a single term. */
static void of_two(const struct scaling_pairs *p, struct scaling_fit *f)
{
	double exponent = log(p->sizes[1] / p->sizes[0]) / log(p->lengths[1] / p->lengths[0]);

	if (exponent < SQUARE_FROM)
		return;
	*f = (struct scaling_fit){.kind = SCALING_SQUARE, .c = p->y[2] / p->t[3]};
	f->off = off(p, 0, 0, f->c);
}

void scaling_fit(const struct scaling_pairs *p, struct scaling_fit *out)
{
	struct scaling_fit one = {.kind = SCALING_LINEAR}, two = {.kind = SCALING_SQUARE};
	double level = p->n ? p->y[0] / p->weight : 0, flat = p->n ? off(p, level, 0, 0) : 0;
	bool square;

	*out = (struct scaling_fit){.kind = SCALING_UNKNOWN, .a = level, .off = flat};
	if (p->different < 2)
		return;
	if (flat <= OFF_EXACT) {
		out->kind = SCALING_CONSTANT;
		return;
	}
	if (!line(p, &one))
		return;
	square =
	    p->different > 2 && one.off > OFF_EXACT && parabola(p, &two) && two.off < one.off / 2;
	if (p->different == 2)
		of_two(p, &one);
	if (square)
		one = two;
	if (one.off <= OFF_MOST && one.off * one.off <= (1 - EXPLAINS) * flat * flat)
		*out = one;
}

double scaling_at(const struct scaling_fit *f, double length)
{
	return fmax(0, f->a + f->b * length + f->c * length * length);
}

double scaling_length(const struct scaling_fit *f, double size)
{
	double d = f->b * f->b - 4 * f->c * (f->a - size), length = 0;

	if (f->kind == SCALING_LINEAR)
		length = (size - f->a) / f->b;
	else if (f->kind == SCALING_SQUARE && d > 0)
		length = (-f->b + sqrt(d)) / (2 * f->c);
	return length > 0 ? length : 0;
}

double scaling_ratio(const struct scaling_fit *f, double shorter, double longer)
{
	double from = scaling_at(f, longer);

	if ((f->kind != SCALING_LINEAR && f->kind != SCALING_SQUARE) || shorter >= longer ||
	    from <= 0)
		return 1;
	return fmin(1, scaling_at(f, shorter) / from);
}
