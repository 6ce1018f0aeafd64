/* points.c - see points.h. */
#include "export/points.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SHIFT 17 /* 131 us: all of a short program */

static void join(struct points_bucket *into, const struct points_bucket *later)
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

static void halve(struct points *c)
{
	for (uint32_t i = 0; i < POINTS_BUCKETS / 2; i++) {
		struct points_bucket one = c->buckets[2 * i];

		join(&one, &c->buckets[2 * i + 1]);
		c->buckets[i] = one;
	}
	memset(c->buckets + POINTS_BUCKETS / 2, 0, POINTS_BUCKETS / 2 * sizeof(*c->buckets));
	c->shift++;
}

int points_add(struct points *c, uint64_t time_ns, uint64_t value)
{
	struct points_point p = {time_ns, value};
	struct points_bucket one = {p, p, p, true};

	if (c->any && value == c->value)
		return 0;
	if (!c->buckets) {
		c->buckets = calloc(POINTS_BUCKETS, sizeof(*c->buckets));
		if (!c->buckets)
			return -ENOMEM;
		c->shift = FIRST_SHIFT;
	}
	while (time_ns >> c->shift >= POINTS_BUCKETS)
		halve(c);
	join(&c->buckets[time_ns >> c->shift], &one);
	c->value = value;
	c->any = true;
	return 0;
}

static int each_of(const struct points_bucket *b,
    int (*fn)(void *arg, uint64_t time_ns, uint64_t value), void *arg)
{
	struct points_point p[3] = {b->least, b->most, b->last};
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

int points_each(
    const struct points *c, int (*fn)(void *arg, uint64_t time_ns, uint64_t value), void *arg)
{
	int rc = 0;

	for (uint32_t i = 0; c->buckets && !rc && i < POINTS_BUCKETS; i++)
		if (c->buckets[i].any)
			rc = each_of(&c->buckets[i], fn, arg);
	return rc;
}

void points_fini(struct points *c)
{
	free(c->buckets);
	c->buckets = NULL;
}
