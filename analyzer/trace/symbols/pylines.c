#include "trace/symbols/pylines.h"

#include <stdbool.h>

#include "trace/cursor.h"
#include "util/sort.h"

#define MARK_ENTRIES 32u /* distance of two marks */

/* The state between two entries. */
struct reading {
	struct cursor c;
	const uint8_t *table;
	int64_t end, line; /* end of the entries so far, and the line there */
	struct pylines *marks; /* NULL: make none */
	uint32_t entries; /* since the last mark */
};

/* Start at the last mark before or at the offset. */
static void start(struct reading *r, const struct pylines *marks, int64_t offset)
{
	size_t n = sort_up_to(marks->items, marks->count, sizeof(*marks->items), (uint64_t)offset);

	if (!n)
		return;
	r->c.p = r->table + marks->items[n - 1].at;
	r->end = marks->items[n - 1].end;
	r->line = marks->items[n - 1].line;
}

/* Call before each entry. Marks are in order, and nothing beyond the last one was read before.
 * Without memory, the table is read again. */
static inline void mark(struct reading *r)
{
	size_t at = (size_t)(r->c.p - r->table);

	if (!r->marks || r->entries++ < MARK_ENTRIES)
		return;
	r->entries = 0;
	if (!r->marks->count || at > r->marks->items[r->marks->count - 1].at)
		(void)vec_push(r->marks, (struct pylines_mark){r->end, r->line, at});
}

/* CPython keeps a line in an int: a table that leaves that range is damaged. */
static bool is_line(int64_t line)
{
	return line >= INT32_MIN && line <= INT32_MAX;
}

static int8_t s8(uint8_t byte)
{
	return byte < 128 ? (int8_t)byte : (int8_t)(byte - 256);
}

/* Read co_lnotab, up to 3.9. */
static int64_t line_lnotab(struct reading *r, int64_t offset)
{
	while (cursor_left(&r->c) >= 2) {
		mark(r);
		r->end += (int64_t)cursor_fixed(&r->c, 1);
		if (r->end > offset)
			break;
		r->line += s8((uint8_t)cursor_fixed(&r->c, 1));
	}
	return r->line;
}

/* Read co_linetable of 3.10. */
static int64_t line_310(struct reading *r, int64_t offset)
{
	while (cursor_left(&r->c) >= 2) {
		uint8_t size;
		int8_t delta;

		mark(r);
		size = (uint8_t)cursor_fixed(&r->c, 1);
		delta = s8((uint8_t)cursor_fixed(&r->c, 1));
		r->end += size;
		if (delta != -128)
			r->line += delta;
		if (offset < r->end)
			return delta == -128 ? 0 : r->line;
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

/* Read co_linetable from 3.11 on. */
static int64_t line_311(struct reading *r, int64_t offset)
{
	struct cursor *c = &r->c;

	while (cursor_left(c)) {
		uint8_t head, kind;
		bool none = false;

		mark(r);
		head = (uint8_t)cursor_fixed(c, 1);
		kind = head >> 3 & 15;
		if (!(head & 128))
			return 0; /* no entry begins like this */
		r->end += ((head & 7) + 1) * 2;
		if (kind == 15)
			none = true;
		else if (kind >= 13)
			r->line += six_bit_signed(c); /* 60 bits at most */
		else if (kind >= 10)
			r->line += kind - 10;
		if (c->bad || !is_line(r->line))
			return 0;
		if (offset < r->end)
			return none ? 0 : r->line;
		/* skip columns to the next entry: only heads have this bit */
		cursor_skip_to(c, 128);
	}
	return 0;
}

uint32_t pylines_line(uint32_t version, uint32_t first_line, const uint8_t *table, size_t bytes,
    int64_t offset, struct pylines *marks)
{
	struct reading r = {
	    .c = cursor_of(table, bytes), .table = table, .line = first_line, .marks = marks};
	int64_t line = first_line;

	if (marks && offset >= 0)
		start(&r, marks, offset);
	if (offset >= 0) {
		if (version < 0x30a)
			line = line_lnotab(&r, offset);
		else if (version == 0x30a)
			line = line_310(&r, offset);
		else
			line = line_311(&r, offset);
	}
	return line > 0 && line <= UINT32_MAX ? (uint32_t)line : 0;
}
