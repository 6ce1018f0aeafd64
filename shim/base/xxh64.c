/*
 * xxh64.c - XXH64 as specified in "xxHash fast digest algorithm" (github.com/Cyan4973/xxHash,
 * doc/xxhash_spec.md), for seed 0 and little-endian machines.
 */
#include "base/xxh64.h"

#include <string.h>

#define P1 0x9E3779B185EBCA87ull
#define P2 0xC2B2AE3D27D4EB4Full
#define P3 0x165667B19E3779F9ull
#define P4 0x85EBCA77C2B2AE63ull
#define P5 0x27D4EB2F165667C5ull

static uint64_t rotate(uint64_t v, int n)
{
	return v << n | v >> (64 - n);
}

static uint64_t read64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return v;
}

static uint64_t lane(uint64_t acc, uint64_t input)
{
	return rotate(acc + input * P2, 31) * P1;
}

static uint64_t merge(uint64_t acc, uint64_t value)
{
	return (acc ^ lane(0, value)) * P1 + P4;
}

uint64_t xxh64(const void *data, size_t bytes)
{
	const uint8_t *p = data, *end = p + bytes;
	uint64_t h;

	if (bytes >= 32) {
		uint64_t a = P1 + P2, b = P2, c = 0, d = 0 - P1;

		for (; end - p >= 32; p += 32) {
			a = lane(a, read64(p));
			b = lane(b, read64(p + 8));
			c = lane(c, read64(p + 16));
			d = lane(d, read64(p + 24));
		}
		h = rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18);
		h = merge(merge(merge(merge(h, a), b), c), d);
	} else {
		h = P5;
	}
	h += bytes;
	for (; end - p >= 8; p += 8)
		h = rotate(h ^ lane(0, read64(p)), 27) * P1 + P4;
	if (end - p >= 4) {
		uint32_t v;

		memcpy(&v, p, 4);
		h = rotate(h ^ v * P1, 23) * P2 + P3;
		p += 4;
	}
	for (; p < end; p++)
		h = rotate(h ^ *p * P5, 11) * P1;
	h = (h ^ h >> 33) * P2;
	h = (h ^ h >> 29) * P3;
	return h ^ h >> 32;
}
