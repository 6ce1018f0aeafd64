#include "trace/packed/packed_events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/cursor.h"
#include "util/map.h"
#include "whyoom/trace.h"

#define KIND(tag) ((tag)&15u)
#define FLAG_SAME 0x80u /* ALLOC: the stack is omitted; ALLOC_EXPECTED: the size is omitted */
#define PLACES TRACE_EXPECTED_PLACES
#define ESCAPE 255u

/* Codes for the address of an ALLOC: it is written; it is the previous event's; or it is the n-th
 * newest released address of its class, from PLACE_FREE on. */
#define PLACE_WRITTEN 0u
#define PLACE_SAME 1u
#define PLACE_FREE 2u
#define PLACE_MOST (255u - PLACE_FREE)

/* Classes of sizes that get the same blocks from malloc. */
#define CLASSES_FINE 1024u
#define CLASSES (CLASSES_FINE + 64u)

/* --- what splitting and joining both know of the chunk so far --- */

struct birth {
	uint64_t address;
	uint32_t next; /* the block of its class released before it; 0: none */
	uint32_t class; /* CLASSES: it cannot be reused */
};

struct course {
	uint64_t address; /* in eighths, as in the trace */
	uint64_t stack;
	struct {
		uint64_t stack, size;
	} expected[PLACES];
	struct birth *births; /* numbered from 1 */
	uint32_t count, room;
	uint32_t newest[CLASSES]; /* the latest released birth; 0: none */
};

static uint32_t class_of(uint64_t size)
{
	if (size >= CLASSES_FINE * 16 - 23)
		return CLASSES_FINE + 63 - (uint32_t)__builtin_clzll(size);
	return (uint32_t)(size + 23) / 16;
}

static int course_init(struct course *c, size_t bytes)
{
	memset(c, 0, sizeof(*c));
	c->room = (uint32_t)(bytes / 3 + 2); /* no event is shorter */
	c->births = malloc(c->room * sizeof(*c->births));
	return c->births ? 0 : -ENOMEM;
}

static void course_acquired(struct course *c, uint64_t size)
{
	if (c->count + 1 < c->room)
		c->births[++c->count] =
		    (struct birth){.address = c->address, .class = class_of(size)};
}

static void course_released(struct course *c, uint32_t birth)
{
	struct birth *b = &c->births[birth];

	if (b->class >= CLASSES)
		return;
	b->next = c->newest[b->class];
	c->newest[b->class] = birth;
	b->class = CLASSES;
}

/* Reuse the n-th newest address, from 0. Returns its birth; 0: there are fewer. */
static uint32_t course_take(struct course *c, uint32_t class, uint32_t n)
{
	uint32_t *link = &c->newest[class], taken;

	while (*link && n--)
		link = &c->births[*link].next;
	taken = *link;
	if (taken)
		*link = c->births[taken].next;
	return taken;
}

/* Return the position of that address among the newest; PLACE_MOST: not among them. */
static uint32_t course_find(const struct course *c, uint32_t class, uint64_t address)
{
	uint32_t n = 0, at = c->newest[class];

	while (at && n < PLACE_MOST && c->births[at].address != address) {
		at = c->births[at].next;
		n++;
	}
	return at ? n : PLACE_MOST;
}

/* Return a stack's slot in the table of what followed it. */
static uint32_t table_slot(uint64_t stack)
{
	return (uint32_t)stack * 2654435761u >> 22;
}

/* --- bytes --- */

static int put(struct packed_bytes *b, const void *data, size_t length)
{
	if (length > b->room - b->length) {
		size_t room = (b->length + length) * 2 + 256;
		uint8_t *grown = realloc(b->data, room);

		if (!grown)
			return -ENOMEM;
		b->data = grown;
		b->room = room;
	}
	if (length)
		memcpy(b->data + b->length, data, length);
	b->length += length;
	return 0;
}

static int put_byte(struct packed_bytes *b, uint64_t byte)
{
	uint8_t one = (uint8_t)byte;

	if (b->length < b->room) {
		b->data[b->length++] = one;
		return 0;
	}
	return put(b, &one, 1);
}

static int put_varint(struct packed_bytes *b, uint64_t value)
{
	uint8_t raw[CURSOR_VARINT_MAX];

	return put(b, raw, cursor_write_varint(raw, value));
}

/* Write one byte; the rest goes to the next stream. */
static int put_short(struct packed_bytes *b, uint64_t value)
{
	if (value < ESCAPE)
		return put_byte(b, value);
	return put_byte(b, ESCAPE) || put_varint(b + 1, value - ESCAPE) ? -ENOMEM : 0;
}

/* Write three planes, the third as above. */
static int put_planes(struct packed_bytes *b, uint64_t value)
{
	return put_byte(b, value) || put_byte(b + 1, value >> 8) || put_short(b + 2, value >> 16)
		   ? -ENOMEM
		   : 0;
}

static uint64_t get_short(struct cursor *c)
{
	uint64_t value = cursor_fixed(c, 1);

	return value < ESCAPE ? value : ESCAPE + cursor_varint(c + 1);
}

static uint64_t get_planes(struct cursor *c)
{
	uint64_t value = cursor_fixed(c, 1);

	value |= cursor_fixed(c + 1, 1) << 8;
	return value | get_short(c + 2) << 16;
}

void packed_streams_fini(struct packed_streams *s)
{
	for (size_t i = 0; i < PACKED_STREAMS; i++)
		free(s->of[i].data);
	memset(s, 0, sizeof(*s));
}

/* --- splitting --- */

struct splitter {
	struct course course;
	struct packed_bytes *to;
	struct map live; /* address to birth */
};

static int split_alloc(struct splitter *w, struct cursor *c, unsigned tag, uint64_t step)
{
	struct course *k = &w->course;
	uint32_t place = table_slot(k->stack), class, n;
	bool expected = KIND(tag) == TRACE_ALLOC_EXPECTED, same = tag & FLAG_SAME;
	uint64_t size = k->expected[place].size, before = k->address, *birth;
	uint64_t stack = expected ? k->expected[place].stack : k->stack;
	int rc = 0;

	if (!expected || !same) {
		size = cursor_varint(c);
		rc = put_planes(&w->to[PACKED_SIZE], size);
	}
	if (!expected && !same && !rc) {
		stack = cursor_varint(c);
		rc = put_planes(&w->to[PACKED_STACK], stack);
	}
	k->stack = k->expected[place].stack = stack;
	k->expected[place].size = size;
	k->address += cursor_signed(step);
	class = class_of(size);
	n = course_find(k, class, k->address);
	if (n < PLACE_MOST) {
		course_take(k, class, n);
		rc = rc ? rc : put_byte(&w->to[PACKED_PLACE], PLACE_FREE + n);
	} else if (k->address == before) {
		rc = rc ? rc : put_byte(&w->to[PACKED_PLACE], PLACE_SAME);
	} else {
		rc = rc ? rc : put_byte(&w->to[PACKED_PLACE], PLACE_WRITTEN);
		rc = rc ? rc : put_planes(&w->to[PACKED_ADDRESS], step);
	}
	course_acquired(k, size);
	birth = rc ? NULL : map_put(&w->live, k->address);
	if (!birth)
		return -ENOMEM;
	*birth = k->count;
	return 0;
}

static int split_free(struct splitter *w, uint64_t step)
{
	struct course *k = &w->course;
	uint64_t *birth;

	k->address += cursor_signed(step);
	birth = map_find(&w->live, k->address);
	if (!birth || !*birth)
		return put_planes(&w->to[PACKED_AGE], 0) || put_planes(&w->to[PACKED_ADDRESS], step)
			   ? -ENOMEM
			   : 0;
	if (put_planes(&w->to[PACKED_AGE], k->count - *birth + 1))
		return -ENOMEM;
	course_released(k, (uint32_t)*birth);
	*birth = 0;
	return 0;
}

/* Split one event. 1: this is no event. */
static int split_event(struct splitter *w, struct cursor *c)
{
	unsigned tag = (unsigned)cursor_fixed(c, 1);
	const uint8_t *from;
	uint64_t step;
	int rc = put_byte(&w->to[PACKED_TAG], tag);

	if (rc)
		return rc;
	if (KIND(tag) == TRACE_EXTENDED) {
		from = c->p;
		cursor_varint(c);
		cursor_take(c, cursor_varint(c));
		return c->bad ? 1 : put(&w->to[PACKED_LITERAL], from, (size_t)(c->p - from));
	}
	rc = put_short(&w->to[PACKED_TIME], cursor_varint(c));
	step = cursor_varint(c);
	if (rc || c->bad)
		return rc ? rc : 1;
	switch (KIND(tag)) {
	case TRACE_ALLOC:
	case TRACE_ALLOC_EXPECTED:
		rc = split_alloc(w, c, tag, step);
		break;
	case TRACE_FREE:
		rc = split_free(w, step);
		break;
	case TRACE_UNFREE:
		w->course.address += cursor_signed(step);
		rc = put_planes(&w->to[PACKED_ADDRESS], step);
		break;
	default:
		return 1;
	}
	return rc ? rc : c->bad;
}

static int prove(const struct packed_streams *s, const uint8_t *chunk, size_t bytes)
{
	uint8_t *again = malloc(bytes);
	int rc = again ? packed_join(s, again, bytes) : -ENOMEM;

	if (!rc)
		rc = memcmp(again, chunk, bytes) != 0;
	free(again);
	return rc;
}

int packed_split(const uint8_t *chunk, size_t bytes, struct packed_streams *out)
{
	const size_t head = sizeof(struct trace_chunk);
	struct splitter *w;
	struct trace_chunk h;
	struct cursor c;
	int rc;

	for (size_t i = 0; i < PACKED_STREAMS; i++)
		out->of[i].length = 0;
	if (bytes <= head || bytes > PACKED_CHUNK_MAX)
		return 1;
	memcpy(&h, chunk, sizeof(h));
	if (h.magic != TRACE_CHUNK_MAGIC || h.type != TRACE_CHUNK_EVENTS || h.bytes != bytes ||
	    h.committed > bytes - head)
		return 1;
	w = calloc(1, sizeof(*w));
	if (!w || course_init(&w->course, bytes)) {
		free(w);
		return -ENOMEM;
	}
	map_seed();
	w->to = out->of;
	rc = put(&w->to[PACKED_LITERAL], chunk, head);
	c = cursor_of(chunk + head, h.committed);
	while (!rc && cursor_left(&c))
		rc = split_event(w, &c);
	if (!rc)
		rc = put(
		    &w->to[PACKED_LITERAL], chunk + head + h.committed, bytes - head - h.committed);
	map_free(&w->live);
	free(w->course.births);
	free(w);
	return rc ? rc : prove(out, chunk, bytes);
}

/* --- joining --- */

struct joiner {
	struct course course;
	struct cursor from[PACKED_STREAMS];
	uint8_t *to, *end;
	bool bad;
};

static void emit(struct joiner *j, const uint8_t *data, size_t length)
{
	if (!data || length > (size_t)(j->end - j->to)) {
		j->bad = true;
		return;
	}
	memcpy(j->to, data, length);
	j->to += length;
}

static void emit_varint(struct joiner *j, uint64_t value)
{
	uint8_t raw[CURSOR_VARINT_MAX];

	if (value < 0x80 && j->to < j->end)
		*j->to++ = (uint8_t)value;
	else
		emit(j, raw, cursor_write_varint(raw, value));
}

/* Write the step from the previous event's address to `address`. */
static void emit_step(struct joiner *j, uint64_t address)
{
	uint64_t step = address - j->course.address;

	j->course.address = address;
	emit_varint(j, step << 1 ^ (0 - (step >> 63)));
}

static void emit_written(struct joiner *j)
{
	uint64_t step = get_planes(&j->from[PACKED_ADDRESS]);

	j->course.address += cursor_signed(step);
	emit_varint(j, step);
}

static void join_alloc(struct joiner *j, unsigned tag)
{
	struct course *k = &j->course;
	uint32_t place = table_slot(k->stack), told, taken;
	bool expected = KIND(tag) == TRACE_ALLOC_EXPECTED, same = tag & FLAG_SAME;
	uint64_t size = k->expected[place].size;
	uint64_t stack = expected ? k->expected[place].stack : k->stack;

	if (!expected || !same)
		size = get_planes(&j->from[PACKED_SIZE]);
	if (!expected && !same)
		stack = get_planes(&j->from[PACKED_STACK]);
	k->stack = k->expected[place].stack = stack;
	k->expected[place].size = size;
	told = (uint32_t)cursor_fixed(&j->from[PACKED_PLACE], 1);
	if (told == PLACE_WRITTEN) {
		emit_written(j);
	} else if (told == PLACE_SAME) {
		emit_step(j, k->address);
	} else {
		taken = course_take(k, class_of(size), told - PLACE_FREE);
		j->bad |= !taken;
		emit_step(j, taken ? k->births[taken].address : 0);
	}
	if (!expected || !same)
		emit_varint(j, size);
	if (!expected && !same)
		emit_varint(j, stack);
	course_acquired(k, size);
}

static void join_free(struct joiner *j)
{
	struct course *k = &j->course;
	uint64_t age = get_planes(&j->from[PACKED_AGE]);
	uint32_t birth;

	if (!age) {
		emit_written(j);
		return;
	}
	if (age > k->count) {
		j->bad = true;
		return;
	}
	birth = k->count - (uint32_t)age + 1;
	emit_step(j, k->births[birth].address);
	course_released(k, birth);
}

static void join_event(struct joiner *j)
{
	unsigned tag = (unsigned)cursor_fixed(&j->from[PACKED_TAG], 1);
	struct cursor *literal = &j->from[PACKED_LITERAL];
	uint8_t byte = (uint8_t)tag;
	const uint8_t *from;

	emit(j, &byte, 1);
	if (KIND(tag) == TRACE_EXTENDED) {
		from = literal->p;
		cursor_varint(literal);
		cursor_take(literal, cursor_varint(literal));
		emit(j, from, (size_t)(literal->p - from));
		return;
	}
	emit_varint(j, get_short(&j->from[PACKED_TIME]));
	switch (KIND(tag)) {
	case TRACE_ALLOC:
	case TRACE_ALLOC_EXPECTED:
		join_alloc(j, tag);
		break;
	case TRACE_FREE:
		join_free(j);
		break;
	case TRACE_UNFREE:
		emit_written(j);
		break;
	default:
		j->bad = true;
	}
}

/* True if bytes are left over or missing. */
static bool uneven(const struct joiner *j)
{
	for (size_t i = 0; i < PACKED_STREAMS; i++)
		if (j->from[i].bad || cursor_left(&j->from[i]))
			return true;
	return j->bad || j->to != j->end;
}

int packed_join(const struct packed_streams *s, uint8_t *chunk, size_t bytes)
{
	struct joiner *j = calloc(1, sizeof(*j));
	struct cursor *literal;
	int rc;

	if (!j || course_init(&j->course, bytes)) {
		free(j);
		return -ENOMEM;
	}
	for (size_t i = 0; i < PACKED_STREAMS; i++)
		j->from[i] = cursor_of(s->of[i].length ? s->of[i].data : chunk, s->of[i].length);
	literal = &j->from[PACKED_LITERAL];
	j->to = chunk;
	j->end = chunk + bytes;
	emit(j, cursor_take(literal, sizeof(struct trace_chunk)), sizeof(struct trace_chunk));
	while (!j->bad && cursor_left(&j->from[PACKED_TAG]))
		join_event(j);
	if (!j->bad) {
		size_t left = cursor_left(literal);

		emit(j, left ? cursor_take(literal, left) : chunk, left);
	}
	rc = uneven(j);
	free(j->course.births);
	free(j);
	return rc;
}
