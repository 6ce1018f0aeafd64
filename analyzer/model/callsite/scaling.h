/*
 * scaling.h - how block sizes scale with the length of the input: not at all, linearly, or with the
 * square. A least-squares fit of relative errors, so that each pair weighs the same whatever its
 * size. Keeps sums only, in constant memory.
 */
#ifndef ANALYZER_MODEL_SCALING_H
#define ANALYZER_MODEL_SCALING_H

#include <stdint.h>

enum scaling {
	SCALING_UNKNOWN, /* too few pairs, or they fit no such curve */
	SCALING_CONSTANT,
	SCALING_LINEAR,
	SCALING_SQUARE,
};

#define SCALING_LENGTHS 4u
struct scaling_pairs {
	double n, t[4], y[3]; /* sums of length^(k+1), size * length^k, by weight */
	double weight;
	double lengths[SCALING_LENGTHS]; /* the first distinct ones */
	double sizes[SCALING_LENGTHS]; /* of these lengths */
	uint32_t different;
};

struct scaling_fit {
	enum scaling kind;
	double a, b, c; /* size = a + b * length + c * length^2 */
	double off; /* its typical error, as a share of the size */
};

/* Add a pair; both values are greater than 0. */
void scaling_add(struct scaling_pairs *p, double length, double size);
void scaling_fit(const struct scaling_pairs *p, struct scaling_fit *out);
/* Return the predicted size for a length; at least 0. */
double scaling_at(const struct scaling_fit *f, double length);
/* Return the length that predicts that size; 0 when sizes do not depend on the length. */
double scaling_length(const struct scaling_fit *f, double size);
/* Return the share of the size for `longer` that remains with `shorter`. */
double scaling_ratio(const struct scaling_fit *f, double shorter, double longer);

#endif
