/*
 * varint.h - the trace's variable-length fields. For an encoder the caller guarantees room; a
 * varint takes at most VARINT_BYTES_MAX bytes. Each function returns the position after the field.
 */
#ifndef SHIM_VARINT_H
#define SHIM_VARINT_H

#include <stdint.h>
#include <string.h>

#define VARINT_BYTES_MAX 10

static inline uint8_t *varint_put(uint8_t *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

/* For values that are nearly always below 2^14; those take no branch. May write two bytes for
 * one. */
static inline uint8_t *varint_put_short(uint8_t *p, uint64_t v)
{
	uint64_t more = (0x7f - v) >> 63; /* in this form no compiler makes it a jump */
	uint16_t two = (uint16_t)((v & 0x7f) | v >> 7 << 8 | more << 7);

	if (__builtin_expect(v >> 14 != 0, 0))
		return varint_put(p, v);
	memcpy(p, &two, 2); /* both architectures are little-endian */
	return p + 1 + more;
}

/*
 * Without a branch on values below 2^28. Writes four bytes whatever the length: for chunks, where
 * events have room behind them.
 */
static inline uint8_t *varint_put_in_room(uint8_t *p, uint64_t v)
{
	uint32_t x = (uint32_t)v;
	/* divides by 7, exact up to 27 */
	uint32_t more = (uint32_t)((31 ^ __builtin_clz(x | 1)) * 37) >> 8;

	if (__builtin_expect(v >> 28 != 0, 0))
		return varint_put(p, v);
	x = (x & 0x3fff) | (x & 0xfffc000) << 2;
	x = (x & 0x7f007f) | (x & 0x3f803f80) << 1;
	x |= 0x808080 & ((UINT32_C(1) << 8 * more) - 1);
	memcpy(p, &x, 4); /* both architectures are little-endian */
	return p + more + 1;
}

static inline uint8_t *varint_put_signed_in_room(uint8_t *p, int64_t v)
{
	return varint_put_in_room(p, ((uint64_t)v << 1) ^ (uint64_t)(v >> 63));
}

static inline uint8_t *varint_put_signed(uint8_t *p, int64_t v)
{
	return varint_put(p, ((uint64_t)v << 1) ^ (uint64_t)(v >> 63));
}

static inline uint8_t *varint_put_bytes(uint8_t *p, const void *s, size_t n)
{
	p = varint_put(p, n);
	memcpy(p, s, n);
	return p + n;
}

/* Read a field that ends before `end`. NULL: there is none, or `p` is NULL. */
static inline const uint8_t *varint_get(const uint8_t *p, const uint8_t *end, uint64_t *out)
{
	uint64_t v = 0;

	for (unsigned shift = 0; p && p < end && shift < 64; shift += 7) {
		v |= (uint64_t)(*p & 0x7f) << shift;
		if (!(*p++ & 0x80)) {
			*out = v;
			return p;
		}
	}
	return NULL;
}

#endif
