/* events.c - fuzz target: traces with a sound form and any content. The mutator takes a chunk
 * apart into events or definitions, changes their numbers, ids, order and count, and rebuilds
 * its lengths, deltas and checksum, so that inputs reach the code behind the reader: model,
 * verdict, what-if, planner, reduce. */
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "sparse.h"
#include "target.h"
#include "trace/cursor.h"
#include "trace/xxh64.h"

#define FIELDS 80u
#define EVENTS 8192u
#define HEAD sizeof(struct trace_chunk)

size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t room);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t room, unsigned seed);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	target_traces(data, bytes);
	return 0;
}

/* --- numbers --- */

static uint64_t state;

static uint64_t draw(uint64_t below)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return below ? (state >> 20) % below : 0;
}

static uint64_t odd_number(void)
{
	static const uint64_t odd[] = {0, 1, 2, 3, 7, 16, 96, 97, 99, 100, 127, 128, 255, 256, 4095,
	    4096, 65535, 65536, 1u << 20, 2u << 20, 1u << 30, INT32_MAX, UINT32_MAX, 1ull << 32,
	    1ull << 40, 1ull << 47, 1ull << 62, INT64_MAX, 1ull << 63, UINT64_MAX};

	return draw(3)	 ? odd[draw(sizeof(odd) / sizeof(odd[0]))]
	       : draw(2) ? draw(64)
			 : 1ull << draw(64);
}

/* --- a chunk's events --- */

/* Addresses are absolute here; a compact event's fields are address, size, stack; an expected
 * ALLOC is stored like another, and becomes one again where it is expected. */
struct ev {
	uint8_t tag; /* flags without SAME_STACK */
	uint64_t kind, dt;
	uint64_t field[FIELDS];
	uint32_t count;
};

struct events {
	struct ev *list; /* EVENTS */
	size_t count;
};

static bool read_extended(struct cursor *c, struct ev *e)
{
	size_t bytes;
	const uint8_t *body;
	struct cursor b;

	e->kind = cursor_varint(c);
	body = cursor_bytes(c, &bytes);
	if (!body)
		return false;
	b = cursor_of(body, bytes);
	e->dt = cursor_varint(&b);
	while (!b.bad && cursor_left(&b) && e->count < FIELDS)
		e->field[e->count++] = cursor_varint(&b);
	return true;
}

/* The event that followed each stack in this chunk. */
struct expected {
	struct {
		uint32_t stack;
		uint64_t size;
	} places[TRACE_EXPECTED_PLACES];
	uint64_t stack; /* of the last ALLOC */
};

static void expect(struct expected *x, uint64_t stack, uint64_t size)
{
	uint32_t place = TRACE_EXPECTED_PLACE(x->stack);

	x->places[place].stack = (uint32_t)stack;
	x->places[place].size = size;
	x->stack = stack;
}

static void read_alloc(struct cursor *c, struct expected *x, struct ev *e)
{
	uint32_t place = TRACE_EXPECTED_PLACE(x->stack);
	bool flag = e->tag & TRACE_ALLOC_SAME_STACK;

	if (e->kind == TRACE_ALLOC_EXPECTED) {
		e->field[1] = flag ? x->places[place].size : cursor_varint(c);
		e->field[2] = x->places[place].stack;
	} else {
		e->field[1] = cursor_varint(c);
		e->field[2] = flag ? x->stack : cursor_varint(c);
	}
	expect(x, e->field[2], e->field[1]);
	e->kind = TRACE_ALLOC;
	e->count = 3;
	e->tag &= (uint8_t)~TRACE_ALLOC_SAME_STACK;
}

static void read_events(struct events *v, const uint8_t *body, size_t bytes)
{
	static struct expected expected;
	struct cursor c = cursor_of(body, bytes);
	uint64_t address = 0;

	expected = (struct expected){0};
	v->count = 0;
	while (!c.bad && cursor_left(&c) && v->count < EVENTS) {
		struct ev e = {.tag = *cursor_take(&c, 1)};

		e.kind = e.tag & TRACE_TAG_KIND;
		if (e.kind == TRACE_EXTENDED) {
			if (!read_extended(&c, &e))
				break;
		} else {
			e.dt = cursor_varint(&c);
			address += cursor_svarint(&c) << 3;
			e.field[0] = address;
			e.count = 1;
			if (e.kind == TRACE_ALLOC || e.kind == TRACE_ALLOC_EXPECTED)
				read_alloc(&c, &expected, &e);
		}
		if (!c.bad)
			v->list[v->count++] = e;
	}
}

static size_t put(uint8_t *out, uint64_t v)
{
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		out[n++] = (uint8_t)(v | 0x80);
	out[n++] = (uint8_t)v;
	return n;
}

static size_t put_signed(uint8_t *out, uint64_t v)
{
	return put(out, v << 1 ^ (0 - (v >> 63)));
}

static size_t write_extended(const struct ev *e, uint8_t *out)
{
	uint8_t body[10 * (FIELDS + 1)];
	size_t n = 0, b = put(body, e->dt);

	for (uint32_t k = 0; k < e->count; k++)
		b += put(body + b, e->field[k]);
	out[n++] = TRACE_EXTENDED;
	n += put(out + n, e->kind);
	n += put(out + n, b);
	memcpy(out + n, body, b);
	return n + b;
}

/* Mostly in the shim's form. */
static size_t write_compact(
    const struct ev *e, const struct expected *x, uint64_t address, uint8_t *out)
{
	uint32_t place = TRACE_EXPECTED_PLACE(x->stack);
	uint64_t kind = e->kind;
	bool alloc = kind == TRACE_ALLOC, flag = alloc && e->field[2] == x->stack;
	size_t n = 0;

	if (alloc && draw(16) && x->places[place].stack && x->places[place].stack == e->field[2]) {
		kind = TRACE_ALLOC_EXPECTED;
		flag = e->field[1] == x->places[place].size;
	}
	out[n++] =
	    (uint8_t)((e->tag & ~TRACE_TAG_KIND) | kind | (flag ? TRACE_ALLOC_SAME_STACK : 0));
	n += put(out + n, e->dt);
	n += put_signed(out + n, (uint64_t)((int64_t)(e->field[0] - address) >> 3));
	if (alloc && !(kind == TRACE_ALLOC_EXPECTED && flag))
		n += put(out + n, e->field[1]);
	if (kind == TRACE_ALLOC && !flag)
		n += put(out + n, e->field[2]);
	return n;
}

/* Write at most `room` bytes; return their number. Events without room are left out. */
static size_t write_events(const struct events *v, uint8_t *out, size_t room)
{
	static struct expected expected;
	uint8_t one[16 + 10 * (FIELDS + 3)];
	uint64_t address = 0;
	size_t at = 0;

	expected = (struct expected){0};
	for (size_t i = 0; i < v->count; i++) {
		const struct ev *e = &v->list[i];
		bool compact = e->kind < TRACE_EXTENDED;
		size_t n =
		    compact ? write_compact(e, &expected, address, one) : write_extended(e, one);

		if (n > room - at)
			break;
		memcpy(out + at, one, n);
		at += n;
		if (compact)
			address += (uint64_t)((int64_t)(e->field[0] - address) >> 3) << 3;
		if (e->kind == TRACE_ALLOC)
			expect(&expected, e->field[2], e->field[1]);
	}
	return at;
}

static struct ev *any(struct events *v)
{
	return &v->list[draw(v->count)];
}

/* An event of that kind may be changed: like another of the same kind, or to any values. */
static void change_field(struct events *v)
{
	struct ev *e = any(v), *other = any(v);
	uint64_t *field = e->count ? &e->field[draw(e->count)] : &e->dt;
	uint32_t same = (uint32_t)(field - e->field);

	switch (draw(7)) {
	case 0:
	case 1:
		*field = odd_number();
		break;
	case 2:
		*field += draw(17) - 8;
		break;
	case 3:
		*field = draw(2) ? *field << draw(12) : *field >> draw(12);
		break;
	case 4: /* the same field of another event of this kind */
		for (int tries = 0; tries < 32 && other->kind != e->kind; tries++)
			other = any(v);
		if (field != &e->dt && same < other->count)
			*field = other->field[same];
		break;
	case 5:
		if (other->count)
			*field = other->field[draw(other->count)];
		break;
	default:
		e->dt = draw(3) ? draw(1ull << draw(40)) : odd_number();
		break;
	}
}

static void change_kind(struct events *v)
{
	struct ev *e = any(v);

	switch (draw(4)) {
	case 0: /* an acquisition becomes a release, and the other way round */
		e->kind = 1 + draw(3);
		e->count = e->kind == TRACE_ALLOC ? 3 : 1;
		break;
	case 1:
		e->kind = 16 + draw(30);
		e->count = (uint32_t)draw(14);
		for (uint32_t i = 0; i < e->count; i++)
			e->field[i] = draw(4) ? draw(8) : odd_number();
		break;
	case 2:
		if (e->count < FIELDS)
			e->field[e->count++] = odd_number();
		break;
	default:
		e->tag ^= (uint8_t)(1u << (4 + draw(3)));
		break;
	}
}

static void change_order(struct events *v)
{
	size_t at = draw(v->count), other = draw(v->count), n = 1 + draw(draw(3) ? 4 : v->count);
	struct ev swap;

	if (n > v->count - at)
		n = v->count - at;
	switch (draw(4)) {
	case 0:
		swap = v->list[at];
		v->list[at] = v->list[other];
		v->list[other] = swap;
		break;
	case 1:
		memmove(&v->list[at], &v->list[at + n], (v->count - at - n) * sizeof(*v->list));
		v->count -= n;
		break;
	default: /* again, perhaps often: each time as if it came later */
		for (uint64_t times = draw(2) ? 1 : 1 + draw(200); times; times--) {
			uint64_t step = draw(4) ? 0 : draw(1 << 20);

			if (v->count + n > EVENTS)
				break;
			memcpy(&v->list[v->count], &v->list[at], n * sizeof(*v->list));
			for (size_t i = v->count; i < v->count + n; i++)
				if (v->list[i].count)
					v->list[i].field[0] += step << 4;
			v->count += n;
		}
		break;
	}
}

static size_t change_events(uint8_t *body, size_t bytes, size_t room)
{
	static struct ev list[EVENTS];
	struct events v = {.list = list};

	read_events(&v, body, bytes);
	for (uint64_t times = 1 + draw(5); times; times--) {
		if (!v.count)
			v.list[v.count++] = (struct ev){
			    .kind = TRACE_ALLOC, .field = {0x7f0000001000, 64, 1}, .count = 3};
		switch (draw(6)) {
		case 0:
		case 1:
		case 2:
			change_field(&v);
			break;
		case 3:
			change_kind(&v);
			break;
		default:
			change_order(&v);
			break;
		}
	}
	bytes = write_events(&v, body, room);
	memset(body + bytes, 0, room - bytes);
	return bytes;
}

/* --- a chunk's definitions --- */

/* The offsets of their records. */
static size_t list_records(const uint8_t *body, size_t bytes, size_t *at, size_t room)
{
	size_t p = 0, n = 0;
	uint32_t length;

	while (p + 8 <= bytes && n < room) {
		memcpy(&length, body + p, 4);
		if (length < 8 || length % 8 || length > bytes - p) {
			p += 8;
			continue;
		}
		at[n++] = p;
		p += length;
	}
	return n;
}

static void change_definitions(uint8_t *body, size_t bytes)
{
	size_t at[2048], count = list_records(body, bytes, at, 2048), i, j, end;
	uint32_t length, other;
	uint8_t swap[256];

	if (!count)
		return;
	i = draw(count), j = draw(count);
	memcpy(&length, body + at[i], 4);
	memcpy(&other, body + at[j], 4);
	switch (draw(5)) {
	case 0: /* one's content, and another's framing */
		if (length > 8 && other > 8)
			memcpy(body + at[i] + 8, body + at[j] + 8,
			    (length < other ? length : other) - 8);
		break;
	case 1: /* once more, at the end */
		memcpy(&other, body + at[count - 1], 4);
		end = at[count - 1] + other;
		if (length <= bytes - end)
			memcpy(body + end, body + at[i], length);
		break;
	case 2: /* as another kind, or cut short */
		body[at[i] + (draw(4) ? 4 : 6)] = (uint8_t)draw(9);
		break;
	case 3: /* the other way round */
		if (length == other && length <= sizeof(swap)) {
			memcpy(swap, body + at[i], length);
			memcpy(body + at[i], body + at[j], length);
			memcpy(body + at[j], swap, length);
		}
		break;
	default:
		if (length > 8)
			LLVMFuzzerMutate(body + at[i] + 8, length - 8, length - 8);
		break;
	}
}

/* --- a file --- */

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return v;
}

static void set32(uint8_t *p, uint64_t v)
{
	uint32_t narrow = (uint32_t)v;

	memcpy(p, &narrow, 4);
}

static void set64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, 8);
}

static void change_chunk(struct sparse_file *f, size_t offset)
{
	uint8_t *chunk = f->data + offset;
	size_t bytes = get32(chunk + 8), committed = get32(chunk + 40), room;
	struct xxh64 hash;

	if (bytes % TRACE_SLOT_BYTES || !bytes || bytes > f->bytes - offset)
		return;
	if (!draw(8)) {
		static const uint8_t fields[] = {12, 16, 20, 44, 56};
		set32(chunk + fields[draw(5)], draw(3) ? draw(5) : odd_number());
	}
	if (!draw(16)) /* its type */
		chunk[4] = (uint8_t)draw(6);
	if (!draw(8))
		set64(chunk + (draw(2) ? 24 : 32), odd_number());
	if (chunk[4] == TRACE_CHUNK_DEFINITIONS) {
		change_definitions(chunk + HEAD, bytes - HEAD);
		return;
	}
	room = bytes - HEAD;
	if (chunk[4] != TRACE_CHUNK_CHECKPOINT)
		room -= TRACE_SIDE_MAX * sizeof(struct trace_side);
	if (committed > room)
		return;
	committed = change_events(chunk + HEAD, committed, room);
	set32(chunk + 40, committed);
	xxh64_init(&hash);
	xxh64_add(&hash, chunk + HEAD, committed);
	set64(chunk + 48, xxh64_done(&hash));
}

/* A chunk as one of another thread's. */
static void copy_chunk(struct sparse_file *f, const size_t *at, size_t count)
{
	size_t from = at[draw(count)], slot = 1 + draw(SPARSE_SLOTS - 1);
	uint8_t *to = f->data + slot * TRACE_SLOT_BYTES;

	if (get32(f->data + from + 8) != TRACE_SLOT_BYTES)
		return;
	memmove(to, f->data + from, TRACE_SLOT_BYTES);
	set32(to + 12, 1 + draw(4));
	if (f->bytes < (slot + 1) * TRACE_SLOT_BYTES)
		f->bytes = (slot + 1) * TRACE_SLOT_BYTES;
}

/* The checkpoint that counts, and its end. */
static void change_checkpoint(struct sparse_file *f, const size_t *at, size_t count)
{
	uint8_t *slot = f->data + offsetof(struct trace_header, checkpoint) +
			draw(TRACE_CHECKPOINT_SLOTS) * sizeof(struct trace_checkpoint);
	uint8_t *ticks = slot + offsetof(struct trace_checkpoint, ticks);

	switch (draw(3)) {
	case 0:
		set32(slot, draw(4) ? draw(4) : odd_number());
		break;
	case 1:
		set32(slot + offsetof(struct trace_checkpoint, parts),
		    draw(4) ? draw(4) : odd_number());
		break;
	default: /* of a chunk, or near it */
		memcpy(ticks, f->data + at[draw(count)] + offsetof(struct trace_chunk, ticks), 8);
		if (draw(2))
			set64(ticks, draw(1u << 30));
		break;
	}
}

static void change_file(struct sparse_file *f)
{
	size_t at[SPARSE_SLOTS], count = 0;

	for (size_t p = TRACE_SLOT_BYTES; p < f->bytes; p += TRACE_SLOT_BYTES)
		if (get32(f->data + p) == TRACE_CHUNK_MAGIC)
			at[count++] = p;
	if (!draw(16)) /* header fields that a reader may have to believe */
		set64(f->data + 48 + 8 * draw(40), odd_number());
	if (!count)
		return;
	if (!draw(16))
		copy_chunk(f, at, count);
	else if (!draw(16))
		change_checkpoint(f, at, count);
	else
		change_chunk(f, at[draw(count)]);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t room, unsigned seed)
{
	struct sparse s;

	state = seed;
	draw(2);
	sparse_read(&s, data, bytes);
	if (!draw(6))
		s.command = (uint8_t)draw(256);
	change_file(&s.files[s.files[1].bytes && !draw(4)]);
	bytes = sparse_write(&s, data, room);
	sparse_fini(&s);
	return bytes;
}
