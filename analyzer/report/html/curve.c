/* curve.c - see curve.h. */
#include "report/html/curve.h"

#include <errno.h>
#include <stdlib.h>

#include "util/num.h"

static uint64_t begin_of(const struct curve *c, uint32_t bucket)
{
	double length = (double)(c->until_ns - c->from_ns);

	return c->from_ns + (uint64_t)(length * bucket / c->buckets);
}

int curve_init(struct curve *c, uint64_t from_ns, uint64_t until_ns, uint32_t buckets)
{
	size_t n = buckets;

	*c = (struct curve){.from_ns = from_ns, .until_ns = until_ns, .buckets = buckets};
	c->next_ns = begin_of(c, 1);
	c->least = calloc(n, sizeof(*c->least));
	c->most = calloc(n, sizeof(*c->most));
	c->last = calloc(n, sizeof(*c->last));
	c->groups = calloc(n * CURVE_GROUPS, sizeof(*c->groups));
	return c->least && c->most && c->last && c->groups ? 0 : -ENOMEM;
}

void curve_fini(struct curve *c)
{
	free(c->least);
	free(c->most);
	free(c->last);
	free(c->groups);
}

static uint32_t bucket_of(const struct curve *c, uint64_t time_ns)
{
	double share;

	if (time_ns <= c->from_ns)
		return 0;
	if (time_ns >= c->until_ns)
		return c->buckets - 1;
	share = (double)(time_ns - c->from_ns) / (double)(c->until_ns - c->from_ns);
	return (uint32_t)(share * c->buckets) < c->buckets ? (uint32_t)(share * c->buckets)
							   : c->buckets - 1;
}

/* Ends the current bucket, and begins those up to `to` with what lives now. */
static void move_to(struct curve *c, uint32_t to)
{
	for (;;) {
		uint64_t *groups = c->groups + (size_t)c->at * CURVE_GROUPS;

		c->last[c->at] = c->live;
		for (uint32_t i = 0; i < CURVE_GROUPS; i++)
			groups[i] = c->group[i];
		if (c->at >= to)
			return;
		c->at++;
		c->least[c->at] = c->most[c->at] = c->live;
	}
}

/* What is released was acquired before: a sum below 0 is damage. */
static void change(uint64_t *sum, int64_t bytes)
{
	*sum = bytes < 0 && *sum < 0 - (uint64_t)bytes ? 0 : *sum + (uint64_t)bytes;
}

void curve_change(struct curve *c, uint64_t time_ns, uint32_t site, uint32_t class, int64_t bytes)
{
	if (time_ns >= c->until_ns)
		return;
	if (time_ns >= c->next_ns) {
		uint32_t bucket = bucket_of(c, time_ns);

		if (bucket > c->at)
			move_to(c, bucket);
		c->next_ns = begin_of(c, c->at + 1);
	}
	change(&c->live, bytes);
	change(&c->group[num_least(site, CURVE_SITES - 1)], bytes);
	change(&c->group[CURVE_SITES + num_least(class, CURVE_CLASSES - 1)], bytes);
	if (time_ns < c->from_ns) {
		c->least[0] = c->most[0] = c->live;
		return;
	}
	if (c->live < c->least[c->at])
		c->least[c->at] = c->live;
	if (c->live > c->most[c->at])
		c->most[c->at] = c->live;
}

void curve_end(struct curve *c)
{
	move_to(c, c->buckets - 1);
}

static void column(
    struct str *to, const uint64_t *values, uint32_t count, uint32_t stride, const uint64_t *less)
{
	struct block_column c = {to, 0};

	for (uint32_t i = 0; i < count; i++)
		block_next(&c, values[(size_t)i * stride] - (less ? less[i] : 0));
}

void curve_write(const struct curve *c, struct str *to)
{
	block_number(to, c->from_ns);
	block_number(to, c->until_ns);
	block_number(to, c->buckets);
	column(to, c->last, c->buckets, 1, NULL);
	column(to, c->most, c->buckets, 1, c->least);
	column(to, c->least, c->buckets, 1, NULL);
	for (uint32_t i = 0; i < CURVE_GROUPS; i++)
		column(to, c->groups + i, c->buckets, CURVE_GROUPS, NULL);
}
