#include "trace/cursor.h"

uint64_t cursor_spoil(struct cursor *c)
{
	c->bad = true;
	c->p = c->end;
	return 0;
}

uint64_t cursor_varint_slow(struct cursor *c)
{
	const uint8_t *p = c->p;
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 70 && p < c->end; shift += 7) {
		uint8_t byte = *p++;

		if (shift == 63 && byte > 1)
			break; /* more than 64 bits, or an eleventh byte */
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			c->p = p;
			return value;
		}
	}
	return cursor_spoil(c);
}

const uint8_t *cursor_bytes(struct cursor *c, size_t *bytes)
{
	uint64_t n = cursor_varint(c);
	const uint8_t *p = cursor_take(c, n);

	*bytes = p ? (size_t)n : 0;
	return p;
}
