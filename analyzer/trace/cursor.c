#include "trace/cursor.h"

struct cursor_far cursor_varint_far(const uint8_t *p, const uint8_t *end)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 70 && p < end; shift += 7) {
		uint8_t byte = *p++;

		if (shift == 63 && byte > 1)
			break; /* more than 64 bits, or an eleventh byte */
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return (struct cursor_far){p, value};
	}
	return (struct cursor_far){0};
}

const uint8_t *cursor_bytes(struct cursor *c, size_t *bytes)
{
	uint64_t n = cursor_varint(c);
	const uint8_t *p = cursor_take(c, n);

	*bytes = p ? (size_t)n : 0;
	return p;
}
