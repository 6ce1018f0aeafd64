#include "trace/xxh64.h"

#include <endian.h>
#include <string.h>

#define P1 0x9e3779b185ebca87ull
#define P2 0xc2b2ae3d27d4eb4full
#define P3 0x165667b19e3779f9ull
#define P4 0x85ebca77c2b2ae63ull
#define P5 0x27d4eb2f165667c5ull

static inline uint64_t rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static inline uint64_t load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return le64toh(v);
}

static inline uint32_t load32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return le32toh(v);
}

static inline uint64_t round_of(uint64_t lane, uint64_t word)
{
	return rotate(lane + word * P2, 31) * P1;
}

void xxh64_init(struct xxh64 *x)
{
	*x = (struct xxh64){.lane = {P1 + P2, P2, 0, 0 - P1}};
}

static void stripe(struct xxh64 *x, const uint8_t *p)
{
	for (unsigned i = 0; i < 4; i++)
		x->lane[i] = round_of(x->lane[i], load64(p + 8 * i));
}

void xxh64_add(struct xxh64 *x, const void *data, size_t bytes)
{
	const uint8_t *p = data;
	size_t held = x->total & 31, take;

	x->total += bytes;
	if (held) {
		take = 32 - held < bytes ? 32 - held : bytes;
		memcpy(x->rest + held, p, take);
		p += take;
		bytes -= take;
		if (held + take < 32)
			return;
		stripe(x, x->rest);
	}
	for (; bytes >= 32; p += 32, bytes -= 32)
		stripe(x, p);
	if (bytes)
		memcpy(x->rest, p, bytes);
}

uint64_t xxh64_done(const struct xxh64 *x)
{
	static const unsigned turns[4] = {1, 7, 12, 18};
	const uint8_t *p = x->rest;
	size_t left = x->total & 31;
	uint64_t h = P5;

	if (x->total >= 32) {
		h = 0;
		for (unsigned i = 0; i < 4; i++)
			h += rotate(x->lane[i], turns[i]);
		for (unsigned i = 0; i < 4; i++)
			h = (h ^ round_of(0, x->lane[i])) * P1 + P4;
	}
	h += x->total;
	for (; left >= 8; p += 8, left -= 8)
		h = rotate(h ^ round_of(0, load64(p)), 27) * P1 + P4;
	if (left >= 4) {
		h = rotate(h ^ load32(p) * P1, 23) * P2 + P3;
		p += 4;
		left -= 4;
	}
	for (; left; p++, left--)
		h = rotate(h ^ *p * P5, 11) * P1;
	h = (h ^ h >> 33) * P2;
	h = (h ^ h >> 29) * P3;
	return h ^ h >> 32;
}

uint64_t xxh64_of(const void *data, size_t bytes)
{
	struct xxh64 x;

	xxh64_init(&x);
	xxh64_add(&x, data, bytes);
	return xxh64_done(&x);
}
