/*
 * small_code.c - see small_code.h. The range coder carries as LZMA's does. Each probability has 11
 * bits and moves by a sixteenth: so little data leaves no time to learn slowly.
 */
#include "trace/small_code.h"

#include <stdbool.h>
#include <string.h>

#define PROBABILITY_BITS 11u
#define PROBABILITY_HALF (1u << (PROBABILITY_BITS - 1))
#define ADAPT_SHIFT 4u
#define RANGE_LEAST (1u << 24)

#define HASH_BITS 14u
#define MATCH_LEAST 4u /* shorter matches cost more than literals, unless the distance repeats */
#define REPEAT_LEAST 2u

/* A number: its bit count as a tree, the two bits below the highest modelled, the rest even. */
struct number_model {
	uint16_t bits[64];
	uint16_t top[33][4];
};

struct small_coder {
	/* the range coder */
	uint64_t low;
	uint32_t range;
	uint8_t cache;
	uint64_t pending;
	bool begun;
	uint8_t *out, *end;
	bool full;

	/* the models */
	uint16_t match[4], repeat[4];
	uint16_t literal[8][256];
	struct number_model length[2], distance, time[2];

	/* the latest position of each hash of four bytes, plus 1 */
	uint32_t places[1u << HASH_BITS];
};

size_t small_coder_bytes(void)
{
	return sizeof(struct small_coder);
}

static void put_byte(struct small_coder *c, uint8_t byte)
{
	if (c->out == c->end)
		c->full = true;
	else
		*c->out++ = byte;
}

static void shift_low(struct small_coder *c)
{
	if ((uint32_t)c->low < 0xff000000u || c->low >> 32) {
		uint8_t carry = (uint8_t)(c->low >> 32);

		if (c->begun)
			put_byte(c, (uint8_t)(c->cache + carry));
		for (; c->pending; c->pending--)
			put_byte(c, (uint8_t)(0xff + carry));
		c->begun = true;
		c->cache = (uint8_t)(c->low >> 24);
	} else {
		c->pending++;
	}
	c->low = (uint32_t)c->low << 8;
}

static void put_bit(struct small_coder *c, uint16_t *model, unsigned bit)
{
	uint32_t bound = (c->range >> PROBABILITY_BITS) * *model;

	if (!bit) {
		c->range = bound;
		*model = (uint16_t)(*model + (((1u << PROBABILITY_BITS) - *model) >> ADAPT_SHIFT));
	} else {
		c->low += bound;
		c->range -= bound;
		*model = (uint16_t)(*model - (*model >> ADAPT_SHIFT));
	}
	while (c->range < RANGE_LEAST) {
		c->range <<= 8;
		shift_low(c);
	}
}

static void put_tree(struct small_coder *c, uint16_t *models, unsigned bits, unsigned value)
{
	unsigned node = 1;

	while (bits-- > 0) {
		unsigned bit = value >> bits & 1;

		put_bit(c, &models[node], bit);
		node = node << 1 | bit;
	}
}

/* Code bits that are 0 or 1 with the same probability. */
static void put_even(struct small_coder *c, uint32_t value, unsigned bits)
{
	while (bits-- > 0) {
		c->range >>= 1;
		if (value >> bits & 1)
			c->low += c->range;
		while (c->range < RANGE_LEAST) {
			c->range <<= 8;
			shift_low(c);
		}
	}
}

static unsigned put_number(struct small_coder *c, struct number_model *m, uint32_t value)
{
	unsigned bits = value ? 32u - (unsigned)__builtin_clz(value) : 0, rest, node = 1;

	put_tree(c, m->bits, 6, bits);
	if (bits < 2)
		return bits;
	rest = bits - 1;
	for (unsigned i = 0; i < 2 && rest; i++) {
		unsigned bit = value >> --rest & 1;

		put_bit(c, &m->top[bits][node], bit);
		node = node << 1 | bit;
	}
	put_even(c, value & ((1u << rest) - 1), rest);
	return bits;
}

static void models_init(uint16_t *models, size_t bytes)
{
	for (size_t i = 0; i < bytes / sizeof(*models); i++)
		models[i] = PROBABILITY_HALF;
}

static uint32_t hash_of(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return v * 2654435761u >> (32 - HASH_BITS);
}

/* Return how many bytes at `at` equal those at `from`. */
static uint32_t same(const uint8_t *window, uint32_t from, uint32_t at, uint32_t end)
{
	uint32_t n = 0;

	for (uint64_t a, b; at + n + 8 <= end; n += 8) {
		memcpy(&a, window + from + n, 8);
		memcpy(&b, window + at + n, 8);
		if (a != b)
			return n + (uint32_t)__builtin_ctzll(a ^ b) / 8;
	}
	while (at + n < end && window[from + n] == window[at + n])
		n++;
	return n;
}

static void see(struct small_coder *c, const uint8_t *window, uint32_t from, uint32_t to)
{
	for (; from < to; from++)
		c->places[hash_of(window + from)] = from + 1;
}

static void put_plain(struct small_coder *c, const uint8_t *window, uint32_t base, uint32_t end)
{
	/* as if both traces were equal */
	uint32_t hashed = end >= 4 ? end - 3 : 0, distance = base;
	uint32_t seen = 0, limit = base < hashed ? base : hashed;
	unsigned state = 0;

	see(c, window, seen, limit);
	seen = limit;
	for (uint32_t at = base; at < end && !c->full;) {
		uint32_t again = distance ? same(window, at - distance, at, end) : 0;
		uint32_t n = 0, place = at < hashed ? c->places[hash_of(window + at)] : 0;

		if (place && again < 32)
			n = same(window, place - 1, at, end);
		if (again >= REPEAT_LEAST && again + 2 >= n) {
			put_bit(c, &c->match[state], 1);
			put_bit(c, &c->repeat[state], 1);
			put_number(c, &c->length[1], again - REPEAT_LEAST);
			n = again;
			state = 1;
		} else if (n >= MATCH_LEAST) {
			distance = at - (place - 1);
			put_bit(c, &c->match[state], 1);
			put_bit(c, &c->repeat[state], 0);
			put_number(c, &c->length[0], n - MATCH_LEAST);
			put_number(c, &c->distance, distance);
			state = 2;
		} else {
			put_bit(c, &c->match[state], 0);
			put_tree(c, c->literal[at ? window[at - 1] >> 5 : 0], 8, window[at]);
			n = 1;
			state = state == 0 || state == 3 ? 0 : 3;
		}
		at += n;
		limit = at < hashed ? at : hashed;
		see(c, window, seen, limit);
		seen = limit;
	}
}

size_t small_encode(struct small_coder *c, const uint8_t *window, uint32_t base, uint32_t end,
    const uint32_t *times, uint32_t count, uint8_t *out, size_t room)
{
	unsigned bits = 0;

	c->low = c->pending = 0;
	c->range = UINT32_MAX;
	c->begun = c->full = false;
	c->out = out;
	c->end = out + room;
	models_init(
	    c->match, offsetof(struct small_coder, places) - offsetof(struct small_coder, match));
	put_plain(c, window, base, end);
	for (uint32_t i = 0; i < count && !c->full; i++)
		bits = put_number(c, &c->time[bits > 3], times[i]);
	for (int i = 0; i < 5; i++)
		shift_low(c);
	return c->full ? 0 : (size_t)(c->out - out);
}
