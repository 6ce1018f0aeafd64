/*
 * small_code.c - a binary range decoder. Each probability has 11 bits and moves by a sixteenth. See
 * small_code.h.
 */
#include "trace/directory/small_code.h"

#include <errno.h>
#include <stdbool.h>

#define PROBABILITY_BITS 11u
#define PROBABILITY_HALF (1u << (PROBABILITY_BITS - 1))
#define ADAPT_SHIFT 4u
#define RANGE_LEAST (1u << 24)
#define MATCH_LEAST 4u
#define REPEAT_LEAST 2u
#define BITS_MOST 32u

/* The model of a number: its bit count, as a tree; two bits below the highest; the rest evenly. */
struct number_model {
	uint16_t bits[64];
	uint16_t top[BITS_MOST + 1][4];
};

struct decoder {
	const uint8_t *p, *end;
	uint32_t range, code;
	unsigned beyond; /* bytes read beyond the end */
	struct models {
		uint16_t match[4], repeat[4];
		uint16_t literal[8][256];
		struct number_model length[2], distance, time[2];
	} m;
};

static void fill(struct decoder *d)
{
	while (d->range < RANGE_LEAST) {
		d->range <<= 8;
		d->code <<= 8;
		if (d->p < d->end)
			d->code |= *d->p++;
		else
			d->beyond++;
	}
}

static unsigned get_bit(struct decoder *d, uint16_t *model)
{
	uint32_t bound = (d->range >> PROBABILITY_BITS) * *model;
	unsigned bit = d->code >= bound;

	if (bit) {
		d->code -= bound;
		d->range -= bound;
		*model = (uint16_t)(*model - (*model >> ADAPT_SHIFT));
	} else {
		d->range = bound;
		*model = (uint16_t)(*model + (((1u << PROBABILITY_BITS) - *model) >> ADAPT_SHIFT));
	}
	fill(d);
	return bit;
}

static unsigned get_tree(struct decoder *d, uint16_t *models, unsigned bits)
{
	unsigned node = 1;

	for (unsigned i = 0; i < bits; i++)
		node = node << 1 | get_bit(d, &models[node]);
	return node - (1u << bits);
}

static uint32_t get_even(struct decoder *d, unsigned bits)
{
	uint32_t value = 0;

	while (bits-- > 0) {
		bool bit;

		d->range >>= 1;
		bit = d->code >= d->range;
		if (bit)
			d->code -= d->range;
		value = value << 1 | bit;
		fill(d);
	}
	return value;
}

/* False: the number has too many bits. */
static bool get_number(struct decoder *d, struct number_model *m, uint32_t *value, unsigned *bits)
{
	unsigned rest, node = 1;

	*bits = get_tree(d, m->bits, 6);
	*value = *bits;
	if (*bits > BITS_MOST)
		return false;
	if (*bits < 2)
		return true;
	rest = *bits - 1;
	for (unsigned i = 0; i < 2 && rest; i++, rest--)
		node = node << 1 | get_bit(d, &m->top[*bits][node]);
	*value = rest ? node << rest | get_even(d, rest) : node;
	return true;
}

static int get_window(struct decoder *d, uint8_t *window, uint32_t base, uint32_t end)
{
	uint32_t at = base, distance = base, n;
	unsigned state = 0, bits;

	while (at < end && !d->beyond) {
		bool again;

		if (!get_bit(d, &d->m.match[state])) {
			window[at] =
			    (uint8_t)get_tree(d, d->m.literal[at ? window[at - 1] >> 5 : 0], 8);
			at++;
			state = state == 0 || state == 3 ? 0 : 3;
			continue;
		}
		again = get_bit(d, &d->m.repeat[state]);
		if (!get_number(d, &d->m.length[again], &n, &bits) ||
		    (!again && !get_number(d, &d->m.distance, &distance, &bits)))
			return -EINVAL;
		if (n > end)
			return -EINVAL;
		n += again ? REPEAT_LEAST : MATCH_LEAST;
		if (!distance || distance > at || n > end - at)
			return -EINVAL;
		for (; n; n--, at++)
			window[at] = window[at - distance];
		state = again ? 1 : 2;
	}
	return at < end ? -EINVAL : 0;
}

int small_decode(const uint8_t *data, size_t bytes, uint8_t *window, uint32_t base, uint32_t end,
    uint32_t *times, uint32_t count)
{
	struct decoder d = {.p = data, .end = data + bytes, .range = UINT32_MAX};
	uint16_t *model = (uint16_t *)(void *)&d.m;
	unsigned bits = 0;
	int r;

	if (bytes < 4)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(d.m) / sizeof(*model); i++)
		model[i] = PROBABILITY_HALF;
	for (int i = 0; i < 4; i++)
		d.code = d.code << 8 | *d.p++;
	r = get_window(&d, window, base, end);
	for (uint32_t i = 0; i < count && !r; i++)
		if (d.beyond || !get_number(&d, &d.m.time[bits > 3], &times[i], &bits))
			r = -EINVAL;
	return d.beyond ? -EINVAL : r;
}
