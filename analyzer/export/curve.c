/* curve.c - see curve.h. */
#include "export/curve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SHIFT 17 /* 131 us: all of a short program */

static void join(struct curve_bucket *into, const struct curve_bucket *later)
{
	if (!later->any)
		return;
	if (!into->any) {
		*into = *later;
		return;
	}
	if (later->least.value < into->least.value)
		into->least = later->least;
	if (later->most.value > into->most.value)
		into->most = later->most;
	into->last = later->last;
}

static void halve(struct curve *c)
{
	for (uint32_t i = 0; i < CURVE_BUCKETS / 2; i++) {
		struct curve_bucket one = c->buckets[2 * i];

		join(&one, &c->buckets[2 * i + 1]);
		c->buckets[i] = one;
	}
	memset(c->buckets + CURVE_BUCKETS / 2, 0, CURVE_BUCKETS / 2 * sizeof(*c->buckets));
	c->shift++;
}

int curve_add(struct curve *c, uint64_t time_ns, uint64_t value)
{
	struct curve_point p = {time_ns, value};
	struct curve_bucket one = {p, p, p, true};

	if (c->any && value == c->value)
		return 0;
	if (!c->buckets) {
		c->buckets = calloc(CURVE_BUCKETS, sizeof(*c->buckets));
		if (!c->buckets)
			return -ENOMEM;
		c->shift = FIRST_SHIFT;
	}
	while (time_ns >> c->shift >= CURVE_BUCKETS)
		halve(c);
	join(&c->buckets[time_ns >> c->shift], &one);
	c->value = value;
	c->any = true;
	return 0;
}

static int each_of(
    const struct curve_bucket *b, int (*fn)(void *arg, uint64_t time_ns, uint64_t value), void *arg)
{
	struct curve_point p[3] = {b->least, b->most, b->last};
	int rc = 0;

	if (p[1].time_ns < p[0].time_ns) {
		p[0] = b->most;
		p[1] = b->least;
	}
	for (int i = 0; !rc && i < 3; i++)
		if (!i || p[i].value != p[i - 1].value)
			rc = fn(arg, p[i].time_ns, p[i].value);
	return rc;
}

int curve_each(
    const struct curve *c, int (*fn)(void *arg, uint64_t time_ns, uint64_t value), void *arg)
{
	int rc = 0;

	for (uint32_t i = 0; c->buckets && !rc && i < CURVE_BUCKETS; i++)
		if (c->buckets[i].any)
			rc = each_of(&c->buckets[i], fn, arg);
	return rc;
}

void curve_fini(struct curve *c)
{
	free(c->buckets);
	c->buckets = NULL;
}
