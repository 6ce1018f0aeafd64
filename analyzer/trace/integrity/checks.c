#include "trace/integrity/checks.h"

#include <endian.h>
#include <string.h>

#include "trace/cursor.h"
#include "trace/xxh64.h"
#include "whyoom/trace.h"

#define OPEN(field) offsetof(struct trace_header, field)

uint64_t checks_header(const uint8_t *header)
{
	return xxh64_of(header, OPEN(check));
}

uint64_t checks_end(const uint8_t *header)
{
	return xxh64_of(header + OPEN(end_how), OPEN(dropped) - OPEN(end_how));
}

size_t checks_counters(const uint16_t **offsets)
{
	static const uint16_t rest[] = {OPEN(dropped[0]), OPEN(dropped[1]), OPEN(dropped[2]),
	    OPEN(dropped[3]), OPEN(dropped[4]), OPEN(dropped[5]), OPEN(dropped[6]),
	    OPEN(dropped[7]), OPEN(dropped[8]), OPEN(dropped[9]), OPEN(dropped[10]),
	    OPEN(dropped[11]), OPEN(dropped[12]), OPEN(dropped[13]), OPEN(dropped[14]),
	    OPEN(dropped[15]), OPEN(dropped_bytes), OPEN(flags), OPEN(paused_bytes),
	    OPEN(brief_stacks), OPEN(untold), OPEN(chunk_bytes)};

	*offsets = rest;
	return sizeof(rest) / sizeof(*rest);
}

void checks_page(uint8_t *page)
{
	const uint16_t *offsets;
	uint64_t check = checks_header(page), end = 0;

	memcpy(page + OPEN(check), &check, sizeof(check));
	if (cursor_at(page + OPEN(end_how), 4))
		end = checks_end(page);
	memcpy(page + OPEN(end_check), &end, sizeof(end));
	for (size_t i = checks_counters(&offsets); i-- > 0;)
		memcpy(page + TRACE_COPY_OFFSET + offsets[i], page + offsets[i], 8);
}

uint32_t checks_open(const uint8_t *chunk)
{
	uint8_t constant[TRACE_CHUNK_CONSTANT];

	memcpy(constant, chunk, sizeof(constant));
	memset(constant + offsetof(struct trace_chunk, bytes), 0, 4);
	return (uint32_t)xxh64_of(constant, sizeof(constant));
}

uint32_t checks_sealed(const uint8_t *chunk, const uint8_t *sides, size_t bytes)
{
	uint32_t check = (uint32_t)xxh64_of(chunk, TRACE_CHUNK_CHECKED);

	return bytes ? check ^ (uint32_t)xxh64_of(sides, bytes) : check;
}

bool checks_chunk(const uint8_t *chunk, const uint8_t *sides, size_t bytes)
{
	uint32_t check = (uint32_t)cursor_at(chunk + offsetof(struct trace_chunk, check), 4);

	return check == checks_open(chunk) || check == checks_sealed(chunk, sides, bytes);
}

bool checks_repair_chunk(uint8_t *chunk, const uint8_t *sides, size_t bytes)
{
	for (size_t bit = 0; bit < 8 * sizeof(struct trace_chunk); bit++) {
		chunk[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (checks_chunk(chunk, sides, bytes))
			return true;
		chunk[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	return false;
}

uint16_t checks_side(const uint8_t *side)
{
	return (uint16_t)xxh64_of(side, offsetof(struct trace_side, check));
}

uint32_t checks_definition(const uint8_t *record, size_t bytes)
{
	const size_t at = offsetof(struct trace_def, committed);
	static const uint8_t uncommitted;
	struct xxh64 x;

	xxh64_init(&x);
	xxh64_add(&x, record, at);
	xxh64_add(&x, &uncommitted, 1);
	xxh64_add(&x, record + at + 1, bytes - TRACE_DEF_CHECK_BYTES - at - 1);
	return (uint32_t)xxh64_done(&x);
}

/* Skip varints; their values are read with the events. */
static inline void skip_varints(struct cursor *c, unsigned count)
{
	while (count > 0 && c->p < c->end)
		count -= *c->p++ < 0x80;
	c->bad |= count > 0;
}

/* Skip one event; the cursor turns bad if there is none. */
static inline void skip_event(struct cursor *c)
{
	uint8_t tag = *c->p++;
	bool short_form = tag & TRACE_ALLOC_SAME_STACK;

	switch (tag & TRACE_TAG_KIND) {
	case TRACE_ALLOC:
		skip_varints(c, short_form ? 3 : 4);
		break;
	case TRACE_ALLOC_EXPECTED:
		skip_varints(c, short_form ? 2 : 3);
		break;
	case TRACE_FREE:
	case TRACE_UNFREE:
		skip_varints(c, 2);
		break;
	case TRACE_EXTENDED:
		cursor_varint(c);
		cursor_take(c, cursor_varint(c));
		break;
	default:
		cursor_spoil(c);
	}
}

uint64_t checks_words(uint8_t *body, const uint8_t *event, const uint8_t *end, uint64_t so_far)
{
	bool extended = (*event & TRACE_TAG_KIND) == TRACE_EXTENDED;
	uint64_t sum = 0;

	if (end < body + 2 * TRACE_WORD)
		for (unsigned i = 0; i < TRACE_WORD; i++)
			body[(int)i - 2 * (int)TRACE_WORD] = (uint8_t)(so_far >> 8 * i);
	for (unsigned words = 0; words < 2 || (extended && end > event); words++) {
		uint64_t word;

		end -= TRACE_WORD;
		memcpy(&word, end, sizeof(word));
		sum += le64toh(word);
	}
	return sum;
}

bool checks_sum(uint8_t *body, size_t bytes, uint64_t sum)
{
	struct cursor c = cursor_of(body, bytes);
	uint64_t all = 0, last = 0;

	while (cursor_left(&c)) {
		const uint8_t *event = c.p;

		skip_event(&c);
		if (c.bad)
			return false;
		last = checks_words(body, event, c.p, all);
		all += last;
	}
	return sum == all || sum == all - last || sum == xxh64_of(body, bytes);
}
