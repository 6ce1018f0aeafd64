#include "trace/pylines.h"

#include <stdbool.h>

#include "trace/cursor.h"

/* CPython has a line in an int: a table that leads elsewhere is damaged. */
static bool is_line(int64_t line)
{
	return line >= INT32_MIN && line <= INT32_MAX;
}

static int8_t s8(uint8_t byte)
{
	return byte < 128 ? (int8_t)byte : (int8_t)(byte - 256);
}

/* co_lnotab, to 3.9. */
static int64_t line_lnotab(int64_t line, struct cursor *c, int64_t offset)
{
	int64_t address = 0;

	while (cursor_left(c) >= 2) {
		address += (int64_t)cursor_fixed(c, 1);
		if (address > offset)
			break;
		line += s8((uint8_t)cursor_fixed(c, 1));
	}
	return line;
}

/* co_linetable of 3.10. */
static int64_t line_310(int64_t line, struct cursor *c, int64_t offset)
{
	int64_t end = 0;

	while (cursor_left(c) >= 2) {
		uint8_t size = (uint8_t)cursor_fixed(c, 1);
		int8_t delta = s8((uint8_t)cursor_fixed(c, 1));

		end += size;
		if (delta != -128)
			line += delta;
		if (offset < end)
			return delta == -128 ? 0 : line;
	}
	return 0;
}

static uint64_t six_bit(struct cursor *c)
{
	uint64_t value = 0, byte;
	unsigned shift = 0;

	do {
		byte = cursor_fixed(c, 1);
		if (shift < 60)
			value |= (byte & 63) << shift;
		shift += 6;
	} while (byte & 64 && !c->bad);
	return value;
}

static int64_t six_bit_signed(struct cursor *c)
{
	uint64_t value = six_bit(c);

	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* co_linetable from 3.11 on. */
static int64_t line_311(int64_t line, struct cursor *c, int64_t offset)
{
	int64_t end = 0;

	while (cursor_left(c)) {
		uint8_t head = (uint8_t)cursor_fixed(c, 1), kind = head >> 3 & 15;
		bool none = false;

		if (!(head & 128))
			return 0; /* no entry begins like this */
		end += ((head & 7) + 1) * 2;
		if (kind == 15)
			none = true;
		else if (kind >= 13)
			line += six_bit_signed(c); /* 60 bits at most */
		else if (kind >= 10)
			line += kind - 10;
		if (c->bad || !is_line(line))
			return 0;
		if (offset < end)
			return none ? 0 : line;
		cursor_skip_to(c, 128); /* columns, and where it ends: only heads have this bit */
	}
	return 0;
}

uint32_t pylines_line(
    uint32_t version, uint32_t first_line, const uint8_t *table, size_t bytes, int64_t offset)
{
	struct cursor c = cursor_of(table, bytes);
	int64_t line = first_line;

	if (offset >= 0) {
		if (version < 0x30a)
			line = line_lnotab(line, &c, offset);
		else if (version == 0x30a)
			line = line_310(line, &c, offset);
		else
			line = line_311(line, &c, offset);
	}
	return line > 0 && line <= UINT32_MAX ? (uint32_t)line : 0;
}
