/*
 * scaling.h - how the size of what is made follows the length of the input that it is made for: not
 * at all, in proportion, or with its square. Fitted to pairs of both, each of which weighs alike
 * whatever its size; sums only, so any number of pairs will do.
 */
#ifndef ANALYZER_MODEL_SCALING_H
#define ANALYZER_MODEL_SCALING_H

#include <stdint.h>

enum scaling {
	SCALING_UNKNOWN, /* too few pairs, or they lie on no curve of these */
	SCALING_CONSTANT,
	SCALING_LINEAR,
	SCALING_SQUARE,
};

#define SCALING_LENGTHS 4u
struct scaling_pairs {
	double n, t[4], y[3]; /* sums of length^(k+1), size * length^k, by weight */
	double weight;
	double lengths[SCALING_LENGTHS]; /* the first different ones */
	double sizes[SCALING_LENGTHS]; /* of them */
	uint32_t different;
};

struct scaling_fit {
	enum scaling kind;
	double a, b, c; /* size = a + b * length + c * length^2 */
	double off; /* typical error of it, as a share of the size */
};

/* Both above 0. */
void scaling_add(struct scaling_pairs *p, double length, double size);
void scaling_fit(const struct scaling_pairs *p, struct scaling_fit *out);
/* The size for that length; 0 at least. */
double scaling_at(const struct scaling_fit *f, double length);
/* The length for that size; 0: it does not tell. */
double scaling_length(const struct scaling_fit *f, double size);
/* What the size for the longer length becomes with the shorter one, as a share of it. */
double scaling_ratio(const struct scaling_fit *f, double shorter, double longer);

#endif
