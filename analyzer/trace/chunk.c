/*
 * chunk.c - reads and checks a chunk's header. What contradicts its check, or the rules of the
 * format, is noted as damage; a single wrong bit is repaired.
 */
#include <string.h>

#include "trace/cursor.h"
#include "trace/integrity/checks.h"
#include "trace/reader.h"
#include "whyoom/trace.h"

#define FIELD(name) offsetof(struct trace_chunk, name)
#define LOOKS 3 /* a running process may seal the chunk between two reads */

static uint32_t get(const uint8_t *raw, size_t at, unsigned bytes)
{
	return (uint32_t)cursor_at(raw + at, bytes);
}

/* Read the side records, as far as the header can be believed. *bytes: their size. */
static int read_sides(struct trace *t, uint64_t offset, const uint8_t *raw, uint8_t *sides,
    size_t *bytes, struct err *err)
{
	uint32_t count = get(raw, FIELD(side_count), 4), whole = get(raw, FIELD(bytes), 4);

	*bytes = 0;
	if (!count || count > TRACE_SIDE_MAX || whole % TRACE_SLOT_BYTES || !whole ||
	    whole > TRACE_CHUNK_BYTES_MAX)
		return 0;
	count *= (uint32_t)sizeof(struct trace_side);
	return source_read(&t->source, offset + whole - count, sides, count, bytes, err);
}

static void damaged(
    struct trace *t, unsigned kind, const struct chunk *c, uint64_t offset, uint64_t bytes)
{
	damage_note(&t->damage, kind,
	    &(struct damage_where){.offset = offset,
		.bytes = bytes,
		.thread = c->distrusted ? 0 : c->thread,
		.sequence = c->sequence,
		.from = c->distrusted ? 0 : c->ticks,
		.to = DAMAGE_LATEST});
}

/* Check the header; repair it if possible. 0; 1: it is damaged; negative errno. */
static int check(struct trace *t, uint64_t offset, uint8_t *raw, struct err *err)
{
	uint8_t sides[TRACE_SIDE_MAX * sizeof(struct trace_side)];
	size_t bytes, got;
	int r;

	for (int look = 0; look < LOOKS; look++) {
		r = look ? source_read(
			       &t->source, offset, raw, sizeof(struct trace_chunk), &got, err)
			 : 0;
		if (!r)
			r = read_sides(t, offset, raw, sides, &bytes, err);
		if (r)
			return r;
		if (checks_chunk(raw, sides, bytes))
			goto sound;
	}
	if (!checks_repair_chunk(raw, sides, bytes) ||
	    get(raw, FIELD(magic), 4) != TRACE_CHUNK_MAGIC)
		return 1;
	damage_note(&t->damage, TRACE_DAMAGE_CHUNK,
	    &(struct damage_where){.offset = offset,
		.bytes = sizeof(struct trace_chunk),
		.thread = get(raw, FIELD(thread), 4),
		.sequence = get(raw, FIELD(sequence), 4)});
sound:
	/* The check shows whether the chunk is sealed. */
	raw[FIELD(sealed)] = get(raw, FIELD(check), 4) != checks_open(raw);
	memset(raw + FIELD(sealed) + 1, 0, 3);
	return 0;
}

static bool is_empty(const uint8_t *raw)
{
	static const uint8_t zeros[sizeof(struct trace_chunk)];

	return !memcmp(raw, zeros, sizeof(zeros));
}

/* True if this is other data, and not a chunk whose process died after it claimed the space. */
static bool is_foreign(const uint8_t *raw)
{
	return get(raw, FIELD(magic), 4) || get(raw, FIELD(committed), 4) ||
	       get(raw, FIELD(side_count), 4);
}

int trace_read_chunk(
    struct trace *t, uint64_t offset, struct chunk *chunk, bool *foreign, struct err *err)
{
	uint8_t raw[sizeof(struct trace_chunk)];
	uint32_t committed, header_bytes, sides, room;
	struct cursor c;
	size_t got;
	int r = source_read(&t->source, offset, raw, sizeof(raw), &got, err);

	if (r)
		return r;
	*chunk = (struct chunk){.offset = offset};
	*foreign = false;
	if (got < sizeof(raw))
		return 1;
	if (t->checks && !is_empty(raw)) {
		r = check(t, offset, raw, err);
		if (r < 0)
			return r;
		chunk->distrusted = r;
	}
	c = cursor_of(raw, got);
	if (cursor_fixed(&c, 4) != TRACE_CHUNK_MAGIC) {
		*foreign = is_foreign(raw);
		return 1;
	}
	chunk->type = (uint8_t)cursor_fixed(&c, 2);
	header_bytes = (uint32_t)cursor_fixed(&c, 2);
	chunk->bytes = (uint32_t)cursor_fixed(&c, 4);
	chunk->thread = (uint32_t)cursor_fixed(&c, 4);
	chunk->tid = (uint32_t)cursor_fixed(&c, 4);
	chunk->sequence = (uint32_t)cursor_fixed(&c, 4);
	chunk->ticks = cursor_fixed(&c, 8);
	chunk->mono_ns = cursor_fixed(&c, 8);
	committed = chunk->committed = (uint32_t)cursor_fixed(&c, 4);
	sides = (uint32_t)cursor_fixed(&c, 4);
	chunk->checksum = cursor_fixed(&c, 8);
	chunk->sealed = cursor_fixed(&c, 4) == 1;

	if (header_bytes != sizeof(raw) || chunk->bytes % TRACE_SLOT_BYTES || !chunk->bytes ||
	    chunk->bytes > TRACE_CHUNK_BYTES_MAX) {
		/* Nothing in this header can be trusted: try the next slot. */
		chunk->torn = chunk->distrusted = true;
		chunk->bytes = TRACE_SLOT_BYTES;
		damaged(t, TRACE_DAMAGE_CHUNK, chunk, offset, 0);
		return 0;
	}
	room = chunk->bytes - (uint32_t)sizeof(raw);
	if (chunk->distrusted) {
		chunk->torn = true;
		damaged(t, TRACE_DAMAGE_CHUNK, chunk, offset, committed < room ? committed : room);
		committed = chunk->type == TRACE_CHUNK_DEFINITIONS ? room : 0;
	} else if (chunk->type == TRACE_CHUNK_DEFINITIONS) {
		committed = room;
	} else if (chunk->type == TRACE_CHUNK_EVENTS || chunk->type == TRACE_CHUNK_SHARED) {
		room -= TRACE_SIDE_MAX * (uint32_t)sizeof(struct trace_side);
		if (committed > room || sides > TRACE_SIDE_MAX) {
			chunk->torn = true;
			damaged(t, TRACE_DAMAGE_CHUNK, chunk, offset,
			    committed > room ? committed - room : 0);
			committed = committed > room ? room : committed;
			sides = sides > TRACE_SIDE_MAX ? 0 : sides;
		}
		chunk->side_count = (uint8_t)sides;
	} else if (chunk->type == TRACE_CHUNK_CHECKPOINT && committed > room) {
		chunk->torn = true;
		committed = room;
	}
	if (chunk->bytes > t->source.size - offset) {
		uint64_t there = t->source.size - offset - sizeof(raw);

		chunk->torn = true;
		chunk->side_count = 0;
		/* Missing definitions are noticed when they are read. */
		damaged(t, TRACE_DAMAGE_SHORT, chunk, t->source.size,
		    committed > there && chunk->type != TRACE_CHUNK_DEFINITIONS ? committed - there
										: 0);
		if (committed > there)
			committed = (uint32_t)there;
	}
	chunk->readable = committed;
	return 0;
}
