/*
 * cursor.h - bounds-checked reads of trace bytes, and the only ones. A read beyond the end gives 0
 * and marks the cursor bad for good; check `bad` once after a group of reads.
 */
#ifndef ANALYZER_TRACE_CURSOR_H
#define ANALYZER_TRACE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cursor {
	const uint8_t *p, *end;
	bool bad;
};

static inline struct cursor cursor_of(const void *data, size_t bytes)
{
	return (struct cursor){.p = data, .end = (const uint8_t *)data + bytes};
}

static inline size_t cursor_left(const struct cursor *c)
{
	return (size_t)(c->end - c->p);
}

/* Reads a varint of any length; .p: what follows it, or NULL: there is no whole varint. By value,
 * so that a cursor whose address is never taken can stay in registers. */
struct cursor_far {
	const uint8_t *p;
	uint64_t value;
};
struct cursor_far cursor_varint_far(const uint8_t *p, const uint8_t *end);

/* Mark the cursor bad and move it to the end. Returns 0. */
static inline uint64_t cursor_spoil(struct cursor *c)
{
	c->bad = true;
	c->p = c->end;
	return 0;
}

/* Read a little-endian number of 1 to 8 bytes. */
static inline uint64_t cursor_fixed(struct cursor *c, unsigned bytes)
{
	uint64_t value = 0;

	if (__builtin_expect(cursor_left(c) < bytes, 0))
		return cursor_spoil(c);
	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)c->p[i] << 8 * i;
	c->p += bytes;
	return value;
}

/* The little-endian number of 1 to 8 bytes at `p`, which are there. */
static inline uint64_t cursor_at(const void *p, unsigned bytes)
{
	struct cursor c = cursor_of(p, bytes);

	return cursor_fixed(&c, bytes);
}

/* Pass over bytes and return them in place; NULL, and bad: fewer are left. */
static inline const uint8_t *cursor_take(struct cursor *c, uint64_t bytes)
{
	const uint8_t *p = c->p;

	if (__builtin_expect(cursor_left(c) < bytes, 0)) {
		cursor_spoil(c);
		return NULL;
	}
	c->p += bytes;
	return p;
}

/* Move to the next byte with one of these bits set, or to the end. */
static inline void cursor_skip_to(struct cursor *c, uint8_t bits)
{
	while (c->p < c->end && !(*c->p & bits))
		c->p++;
}

/* Read a varint length and pass over as many bytes. NULL, and bad: fewer are left. */
const uint8_t *cursor_bytes(struct cursor *c, size_t *bytes);

static inline uint64_t cursor_varint(struct cursor *c)
{
	const uint8_t *p = c->p;
	struct cursor_far far;

	/* Nearly all have one, two or three bytes. */
	if (__builtin_expect(c->end - p >= 3, 1)) {
		if (p[0] < 0x80) {
			c->p = p + 1;
			return p[0];
		}
		if (p[1] < 0x80) {
			c->p = p + 2;
			return (p[0] & 0x7fu) | (uint64_t)p[1] << 7;
		}
		if (p[2] < 0x80) {
			c->p = p + 3;
			return (p[0] & 0x7fu) | (uint64_t)(p[1] & 0x7fu) << 7 |
			       (uint64_t)p[2] << 14;
		}
	}
	far = cursor_varint_far(p, c->end);
	if (!far.p)
		return cursor_spoil(c);
	c->p = far.p;
	return far.value;
}

/* Read a varint of one or two bytes; two must be left. False, and nothing is read: it is longer.
 */
static inline bool cursor_short(struct cursor *c, uint64_t *value)
{
	const uint8_t *p = c->p;

	if (p[0] < 0x80) {
		*value = p[0];
		c->p = p + 1;
		return true;
	}
	if (p[1] >= 0x80)
		return false;
	*value = (p[0] & 0x7fu) | (uint64_t)p[1] << 7;
	c->p = p + 2;
	return true;
}

/* Undo zigzag coding, in two's complement, so that adding the result to a number is right. */
static inline uint64_t cursor_signed(uint64_t v)
{
	return (v >> 1) ^ (0 - (v & 1));
}

static inline uint64_t cursor_svarint(struct cursor *c)
{
	return cursor_signed(cursor_varint(c));
}

/* Write a varint, of at most CURSOR_VARINT_MAX bytes. Returns how many. */
#define CURSOR_VARINT_MAX 10u
static inline size_t cursor_write_varint(uint8_t *to, uint64_t value)
{
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		to[n++] = (uint8_t)(value | 0x80);
	to[n++] = (uint8_t)value;
	return n;
}

/* Read a varint; one that does not fit in 32 bits marks the cursor bad. */
static inline uint32_t cursor_varint32(struct cursor *c)
{
	uint64_t v = cursor_varint(c);

	if (v > UINT32_MAX) {
		c->bad = true;
		return 0;
	}
	return (uint32_t)v;
}

#endif
