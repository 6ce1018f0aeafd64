/*
 * wire.h - encoders for the trace's variable-length fields. The caller has made sure that there is
 * room: a varint takes at most WIRE_VARINT_MAX bytes. Each returns the place after what it wrote.
 */
#ifndef SHIM_WIRE_H
#define SHIM_WIRE_H

#include <stdint.h>
#include <string.h>

#define WIRE_VARINT_MAX 10

static inline uint8_t *wire_varint(uint8_t *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

static inline uint8_t *wire_svarint(uint8_t *p, int64_t v)
{
	return wire_varint(p, ((uint64_t)v << 1) ^ (uint64_t)(v >> 63));
}

static inline uint8_t *wire_bytes(uint8_t *p, const void *s, size_t n)
{
	p = wire_varint(p, n);
	memcpy(p, s, n);
	return p + n;
}

#endif
