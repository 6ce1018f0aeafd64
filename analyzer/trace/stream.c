#include "trace/stream.h"

#include <stdlib.h>
#include <string.h>

#include "trace/cursor.h"
#include "trace/integrity/checks.h"
#include "trace/trace.h"
#include "whyoom/trace.h"

#define BATCH 64u
#define NOBODY UINT32_MAX
#define COMPACT_MAX 64u /* the longest compact event */

/* Return the canonical stack of an id; 0: none, or not defined. */
static inline uint32_t stack_of(struct stream_context *ctx, uint64_t id)
{
	uint32_t stack = stacks_canonical(&ctx->defs->stacks, id);

	ctx->stacks_named++;
	if (__builtin_expect(!stack && id, 0))
		ctx->stacks_undefined += !stacks_is_defined(&ctx->defs->stacks, id);
	return stack;
}

static int make_room(struct stream *s)
{
	uint32_t capacity = s->capacity ? s->capacity * 2 : BATCH + TRACE_SIDE_MAX + 16;
	struct rec *queue;

	if (s->head >= s->capacity / 2 && s->capacity) {
		memmove(s->queue, s->queue + s->head, (s->tail - s->head) * sizeof(*s->queue));
		s->tail -= s->head;
		s->head = 0;
		return 0;
	}
	queue =
	    capacity > s->capacity ? realloc(s->queue, (size_t)capacity * sizeof(*queue)) : NULL;
	if (!queue)
		return -ENOMEM;
	s->queue = queue;
	s->capacity = capacity;
	return 0;
}

/* Accept the record at queue[tail], unless it is older than the floor. */
static inline void take_in(struct stream *s)
{
	struct rec *rec = &s->queue[s->tail];

	if (__builtin_expect(rec->ticks < s->floor, 0)) {
		if (rec->kind == REC_EXTENDED)
			free(rec->extended);
		return;
	}
	if (rec->ticks < s->last_ticks)
		rec->ticks = s->last_ticks;
	else
		s->last_ticks = rec->ticks;
	s->tail++;
}

static int push(struct stream *s, const struct rec *rec)
{
	if (s->tail == s->capacity && make_room(s))
		return -ENOMEM;
	s->queue[s->tail] = *rec;
	take_in(s);
	return 0;
}

static int push_sides(struct stream *s, uint64_t ticks)
{
	int r = 0;

	while (s->side_at < s->side_count && s->sides[s->side_at].ticks <= ticks && !r)
		r = push(s, &s->sides[s->side_at++]);
	return r;
}

static int by_ticks(const void *a, const void *b)
{
	const struct rec *x = a, *y = b;

	return (x->ticks > y->ticks) - (x->ticks < y->ticks);
}

/* Return the next event's thread. In a shared chunk without a SHARED_THREAD it is thread 0, which
 * is created on demand. */
static uint32_t thread_of(struct stream *s, struct stream_context *ctx)
{
	if (s->thread == NOBODY)
		s->thread = ctx->thread_index(ctx->arg, 0, 0);
	return s->thread;
}

static int read_sides(
    struct stream *s, struct stream_context *ctx, struct chunk *chunk, struct err *err)
{
	uint8_t raw[TRACE_SIDE_MAX * sizeof(struct trace_side)];
	size_t bytes = chunk->side_count * sizeof(struct trace_side), got;
	int r;

	s->side_at = s->side_count = 0;
	if (!bytes)
		return 0;
	if (!s->sides)
		s->sides = malloc(TRACE_SIDE_MAX * sizeof(*s->sides));
	if (!s->sides)
		return -ENOMEM;
	r = source_read(ctx->source, chunk->offset + chunk->bytes - bytes, raw, bytes, &got, err);
	if (r)
		return r;
	if (got < bytes) {
		chunk->torn = true;
		return 0;
	}
	for (size_t n = 0; n < chunk->side_count; n++) {
		const uint8_t *side = raw + bytes - (n + 1) * sizeof(struct trace_side);
		struct cursor c = cursor_of(side, sizeof(struct trace_side));
		struct rec rec = {.thread = thread_of(s, ctx)};
		uint8_t flags;

		rec.ticks = cursor_fixed(&c, 8);
		rec.address = cursor_fixed(&c, 8);
		rec.size = cursor_fixed(&c, 8);
		rec.stack = stack_of(ctx, cursor_fixed(&c, 4));
		rec.kind = (uint8_t)cursor_fixed(&c, 1);
		flags = (uint8_t)cursor_fixed(&c, 1);
		if (rec.kind == TRACE_ALLOC)
			rec.api = flags >> TRACE_ALLOC_API_SHIFT & 7;
		else if (rec.kind == TRACE_FREE)
			rec.realloc = flags & TRACE_FREE_REALLOC;
		else if (rec.kind != TRACE_UNFREE)
			rec.kind = 0;
		if (!rec.kind || rec.size >= TRACE_SIZE_LIMIT ||
		    (*ctx->checks && cursor_fixed(&c, 2) != checks_side(side))) {
			if (!chunk->checked)
				damage_note(ctx->damage, TRACE_DAMAGE_EVENTS,
				    &(struct damage_where){
					.offset = chunk->offset + chunk->bytes -
						  (n + 1) * sizeof(struct trace_side),
					.bytes = sizeof(struct trace_side),
					.thread = chunk->thread,
					.sequence = chunk->sequence,
					.from = chunk->ticks,
					.to = DAMAGE_LATEST});
			chunk->torn = true;
			continue;
		}
		s->sides[s->side_count++] = rec;
	}
	qsort(s->sides, s->side_count, sizeof(*s->sides), by_ticks);
	return 0;
}

/* Report damage from this byte to the end of the chunk's body. */
static void note_damage(const struct stream *s, struct stream_context *ctx,
    enum trace_damage_kind kind, uint32_t from, uint64_t ticks)
{
	const struct chunk *chunk = &ctx->chunks[s->first + s->next - 1];

	damage_note(ctx->damage, kind,
	    &(struct damage_where){.offset = chunk->offset + sizeof(struct trace_chunk) + from,
		.bytes = chunk->readable - from,
		.thread = chunk->thread,
		.sequence = chunk->sequence,
		.from = ticks,
		.to = s->next < s->count ? ctx->chunks[s->first + s->next].ticks : DAMAGE_LATEST});
}

/* Check the sum of an unsealed chunk, unless its process runs: then the sum still changes. */
static int check_sum(
    const struct stream *s, struct stream_context *ctx, bool *sound, struct err *err)
{
	const struct chunk *chunk = &ctx->chunks[s->first + s->next - 1];
	size_t bytes = sizeof(struct trace_chunk) + chunk->readable, got;
	uint8_t *raw;
	int r;

	*sound = true;
	if (*ctx->running || chunk->type == TRACE_CHUNK_CHECKPOINT)
		return 0;
	raw = malloc(bytes);
	if (!raw)
		return -ENOMEM;
	r = source_read(ctx->source, chunk->offset, raw, bytes, &got, err);
	if (!r)
		*sound = got == bytes && checks_sum(raw + sizeof(struct trace_chunk),
					     chunk->readable, chunk->checksum);
	free(raw);
	return r;
}

/* Read until the window holds `need` bytes from `at` on, or the rest of the body. */
static int fill(struct stream *s, struct stream_context *ctx, size_t need, struct err *err)
{
	size_t held = s->window_bytes - s->at, room, got;
	uint8_t *grown;
	int r;

	if (held >= need || !s->unread)
		return 0;
	if (need - held > s->unread)
		need = held + (size_t)s->unread;
	room = need > ctx->window ? need : ctx->window;
	if (room > held + s->unread)
		room = held + (size_t)s->unread;
	if (held)
		memmove(s->window, s->window + s->at, held);
	s->at = 0;
	s->window_bytes = held;
	if (room > s->window_capacity) {
		grown = realloc(s->window, room);
		if (!grown)
			return -ENOMEM;
		s->window = grown;
		s->window_capacity = room;
	}
	r = source_read(ctx->source, s->read_offset, s->window + held, room - held, &got, err);
	if (r)
		return r;
	if (!ctx->chunks[s->first + s->next - 1].checked)
		xxh64_add(&s->hash, s->window + held, got);
	s->window_bytes += got;
	s->read_offset += got;
	s->unread -= got;
	ctx->bytes_read += got;
	if (held + got < room) {
		/* The file was truncated during the read. */
		s->unread = 0;
		ctx->chunks[s->first + s->next - 1].torn = true;
	}
	return 0;
}

static uint32_t body_at(const struct stream *s, const struct stream_context *ctx)
{
	const struct chunk *chunk = &ctx->chunks[s->first + s->next - 1];

	return (uint32_t)(chunk->readable - s->unread - (s->window_bytes - s->at));
}

/* Skip a known stretch of blocks only, unless the chunk has side records to merge. */
static bool pass_gap(struct stream *s, const struct stream_context *ctx)
{
	const struct gap *gap =
	    s->side_count ? NULL : gaps_find(&s->gaps, s->next - 1, body_at(s, ctx));
	size_t held = s->window_bytes - s->at, bytes = gap ? gap->to - gap->from : 0;

	if (!gap || bytes > held + s->unread)
		return false;
	if (bytes <= held) {
		s->at += bytes;
	} else {
		s->read_offset += bytes - held;
		s->unread -= bytes - held;
		s->at = s->window_bytes = 0;
	}
	s->ticks = gap->ticks;
	if (s->last_ticks < s->ticks)
		s->last_ticks = s->ticks;
	return true;
}

static int open_chunk(struct stream *s, struct stream_context *ctx, struct err *err)
{
	struct chunk *chunk = &ctx->chunks[s->first + s->next++];
	bool sound = true;
	int r;

	s->latest = UINT64_MAX;
	if (chunk->type == TRACE_CHUNK_EVENTS && s->next < s->count &&
	    chunk[1].ticks > chunk->ticks && chunk[1].ticks < UINT64_MAX - ctx->slack)
		s->latest = chunk[1].ticks + ctx->slack;
	s->thread = chunk->thread ? ctx->thread_index(ctx->arg, chunk->thread, chunk->tid) : NOBODY;
	s->in_chunk = true;
	s->at = s->window_bytes = 0;
	s->unread = chunk->readable;
	s->read_offset = chunk->offset + sizeof(struct trace_chunk);
	s->ticks = chunk->ticks;
	s->address = 0;
	s->stack = s->canonical = 0;
	if (!s->expected)
		s->expected = malloc(TRACE_EXPECTED_PLACES * sizeof(*s->expected));
	if (!s->expected)
		return -ENOMEM;
	memset(s->expected, 0, TRACE_EXPECTED_PLACES * sizeof(*s->expected));
	xxh64_init(&s->hash);
	gaps_begin(&s->gaps, s->next - 1);
	if (*ctx->checks && !chunk->sealed && !chunk->checked && !chunk->torn) {
		r = check_sum(s, ctx, &sound, err);
		if (r)
			return r;
		if (!sound) {
			ctx->bad_checksums++;
			note_damage(s, ctx, TRACE_DAMAGE_CHECKSUM, 0, chunk->ticks);
			chunk->noted = true;
		}
	}
	return read_sides(s, ctx, chunk, err);
}

/* `whole`: decoded to its end; false: it contradicts the format at the present byte. */
static int close_chunk(struct stream *s, struct stream_context *ctx, bool whole)
{
	struct chunk *chunk = &ctx->chunks[s->first + s->next - 1];

	gaps_leave(&s->gaps, s->next - 1, body_at(s, ctx), s->ticks);
	s->in_chunk = false;
	s->ended = s->next == s->count;
	if (!chunk->checked) {
		if (!whole) {
			chunk->torn = true;
			if (!chunk->noted)
				note_damage(s, ctx, TRACE_DAMAGE_EVENTS, body_at(s, ctx), s->ticks);
		} else if (chunk->sealed && !chunk->torn &&
			   xxh64_done(&s->hash) != chunk->checksum) {
			ctx->bad_checksums++;
			note_damage(s, ctx, TRACE_DAMAGE_CHECKSUM, 0, chunk->ticks);
		}
		ctx->torn_chunks += chunk->torn && !chunk->counted;
		chunk->checked = true;
	}
	gaps_end(&s->gaps, !chunk->torn);
	if (s->ended) {
		free(s->window);
		s->window = NULL;
		s->window_capacity = 0;
		free(s->expected);
		s->expected = NULL;
	}
	return push_sides(s, UINT64_MAX);
}

/* False: the block would stand for more than an address space holds. That is damage, and the block
 * counts only for itself. */
static bool believable(uint64_t size, uint64_t mean)
{
	return size && mean < TRACE_SIZE_LIMIT;
}

/* True if no address space has room for the block or mapping. */
static bool is_too_large(uint64_t kind, const union trace_fields *f)
{
	return (kind == TRACE_ALLOC_WIDE && f->ALLOC_WIDE.size >= TRACE_SIZE_LIMIT) ||
	       (kind == TRACE_SAMPLED_ALLOC && f->SAMPLED_ALLOC.size >= TRACE_SIZE_LIMIT) ||
	       (kind == TRACE_MAP && f->MAP.length >= TRACE_SIZE_LIMIT);
}

/* Complete the record of a kind with the fields of a compact one. False: another kind. */
static bool is_simple(uint64_t kind, const union trace_fields *f, struct rec *rec)
{
	switch (kind) {
	case TRACE_TASK:
		rec->kind = TRACE_TASK;
		rec->address = f->TASK.key;
		return true;
	case TRACE_TASK_END:
		rec->kind = TRACE_TASK_END;
		rec->address = f->TASK_END.key;
		return true;
	case TRACE_ALLOC_WIDE:
		rec->kind = TRACE_ALLOC;
		rec->address = f->ALLOC_WIDE.address;
		rec->size = f->ALLOC_WIDE.size;
		rec->api = f->ALLOC_WIDE.api & 7;
		return true;
	case TRACE_SAMPLED_ALLOC:
		rec->kind = TRACE_ALLOC;
		rec->address = f->SAMPLED_ALLOC.address;
		rec->size = f->SAMPLED_ALLOC.size;
		rec->mean =
		    believable(rec->size, f->SAMPLED_ALLOC.mean) ? (float)f->SAMPLED_ALLOC.mean : 0;
		rec->api = f->SAMPLED_ALLOC.api & 7;
		return true;
	case TRACE_FREE_WIDE:
		rec->kind = TRACE_FREE;
		rec->address = f->FREE_WIDE.address;
		rec->realloc = f->FREE_WIDE.flags & TRACE_FREE_REALLOC >> 4;
		return true;
	}
	return false;
}

/* Decode an event with a length. 0; 1: it contradicts the format; negative errno. */
static int decode_extended(
    struct stream *s, struct stream_context *ctx, uint64_t kind, struct cursor *c)
{
	const struct chunk *chunk = &ctx->chunks[s->first + s->next - 1];
	struct rec rec = {.kind = REC_EXTENDED};
	uint64_t dt = cursor_varint(c);
	struct extended_body body;
	int r;

	if (c->bad || dt > s->latest - s->ticks)
		return 1;
	s->ticks += dt;
	rec.ticks = s->ticks;
	/* Outside a checkpoint these two have no meaning. */
	if (!extended_is_known(kind) || ((kind == TRACE_CHECKPOINT || kind == TRACE_WENT) &&
					    chunk->type != TRACE_CHUNK_CHECKPOINT)) {
		ctx->unknown_records += !chunk->checked;
		rec.kind = REC_UNKNOWN;
		goto out;
	}
	if (!extended_read(kind, c, &body) || is_too_large(kind, &body.fields))
		return 1;
	if (kind == TRACE_SHARED_THREAD) {
		const struct trace_SHARED_THREAD *f = &body.fields.SHARED_THREAD;

		if (f->serial > UINT32_MAX || f->tid > UINT32_MAX)
			return 1;
		s->thread = ctx->thread_index(ctx->arg, (uint32_t)f->serial, (uint32_t)f->tid);
		return 0;
	}
	rec.thread = thread_of(s, ctx);
	if (!is_simple(kind, &body.fields, &rec)) {
		rec.extended = extended_new(kind, &body);
		if (!rec.extended)
			return -ENOMEM;
	} else if (rec.kind == TRACE_ALLOC || rec.kind == TRACE_FREE) {
		if (ctx->skip_blocks)
			return push_sides(s, rec.ticks);
		live_prefetch_slot(ctx->live, rec.address);
	}
	if (body.has_stack)
		rec.stack = stack_of(ctx, body.stack);
out:
	r = push_sides(s, rec.ticks);
	if (!r)
		r = push(s, &rec);
	if (r && rec.kind == REC_EXTENDED)
		free(rec.extended);
	return r;
}

/* Decode one event of kind 15, whose body may be larger than the window. */
static int step_extended(struct stream *s, struct stream_context *ctx, struct err *err)
{
	struct cursor c = cursor_of(s->window + s->at + 1, s->window_bytes - s->at - 1);
	uint64_t kind = cursor_varint(&c), length = cursor_varint(&c);
	struct cursor body;
	size_t head = (size_t)(c.p - (s->window + s->at));
	int r;

	if (c.bad || length > s->window_bytes - s->at - head + s->unread)
		return 1;
	if (!extended_is_known(kind) && length > cursor_left(&c) && length > 16) {
		/* An unknown kind needs only its dt: skip the rest without a buffer. */
		body = cursor_of(c.p, cursor_left(&c) < 16 ? cursor_left(&c) : 16);
		r = decode_extended(s, ctx, kind, &body);
		s->at += head;
		while (!r && length) {
			size_t step = s->window_bytes - s->at;
			step = step < length ? step : (size_t)length;
			s->at += step;
			length -= step;
			if (length && s->at == s->window_bytes) {
				r = fill(s, ctx, 1, err);
				if (!r && s->at == s->window_bytes)
					return 1;
			}
		}
		return r;
	}
	r = fill(s, ctx, head + (size_t)length, err);
	if (r)
		return r;
	if (s->window_bytes - s->at < head + length)
		return 1;
	body = cursor_of(s->window + s->at + head, (size_t)length);
	s->at += head + (size_t)length;
	return decode_extended(s, ctx, kind, &body);
}

/* Read size and stack of a compact acquisition. An omitted field has its last value, or the value
 * that followed the last stack before. */
static inline void read_alloc(
    struct stream *s, struct stream_context *ctx, uint8_t tag, struct cursor *c, struct rec *rec)
{
	struct expected *e = &s->expected[TRACE_EXPECTED_PLACE(s->stack)];
	uint64_t id;

	if ((tag & TRACE_TAG_KIND) == TRACE_ALLOC_EXPECTED) {
		rec->size = tag & TRACE_ALLOC_SAME_SIZE ? e->size : cursor_varint(c);
		s->stack = e->stack;
		s->canonical = e->canonical;
	} else {
		rec->size = cursor_varint(c);
		if (!(tag & TRACE_ALLOC_SAME_STACK)) {
			id = cursor_varint(c);
			s->stack = (uint32_t)id;
			s->canonical = stack_of(ctx, id);
		}
	}
	c->bad |= rec->size >= TRACE_SIZE_LIMIT;
	*e = (struct expected){rec->size, s->stack, s->canonical};
	rec->kind = TRACE_ALLOC;
	rec->stack = s->canonical;
	rec->api = tag >> TRACE_ALLOC_API_SHIFT & 7;
	rec->realloc = false;
}

/* Decode compact events until `want` are queued, the window needs bytes, or another kind comes. */
static int step_compact(struct stream *s, struct stream_context *ctx, uint32_t want)
{
	struct cursor c = cursor_of(s->window + s->at, s->window_bytes - s->at);
	const uint8_t *stop = s->unread ? c.end - COMPACT_MAX : c.end, *start = c.p;
	uint64_t ticks = s->ticks, address = s->address, dt;
	const uint64_t latest = s->latest;
	uint32_t thread = thread_of(s, ctx);
	int r = 0;

	while (c.p < stop && s->tail - s->head < want) {
		uint8_t tag = *c.p, kind = tag & TRACE_TAG_KIND;
		struct rec *rec, last;

		if (kind == TRACE_EXTENDED)
			break;
		if (__builtin_expect(s->tail == s->capacity, 0) && make_room(s)) {
			r = -ENOMEM;
			break;
		}
		/* Decode in place: a copy would stall on the stores just made. */
		rec = &s->queue[s->tail];
		*rec = (struct rec){.kind = kind};
		start = c.p++;
		dt = cursor_varint(&c);
		address += cursor_svarint(&c) << 3;
		if (kind == TRACE_ALLOC || kind == TRACE_ALLOC_EXPECTED)
			read_alloc(s, ctx, tag, &c, rec);
		else if (kind == TRACE_FREE)
			rec->realloc = tag & TRACE_FREE_REALLOC;
		else if (kind != TRACE_UNFREE)
			c.bad = true;
		if (c.bad || dt > latest - ticks) {
			c.p = start;
			r = 1;
			break;
		}
		ticks += dt;
		if (ctx->skip_blocks) {
			if (ticks > s->last_ticks)
				s->last_ticks = ticks;
			if (s->side_at < s->side_count && (r = push_sides(s, ticks)))
				break;
			continue;
		}
		live_prefetch_slot(ctx->live, address);
		rec->ticks = ticks;
		rec->address = address;
		rec->thread = thread;
		if (__builtin_expect(s->side_at >= s->side_count, 1)) {
			take_in(s);
			continue;
		}
		last = *rec;
		r = push_sides(s, ticks);
		if (!r)
			r = push(s, &last);
		if (r)
			break;
	}
	s->at = (size_t)(c.p - s->window);
	s->ticks = ticks;
	s->address = address;
	return r;
}

/* True if the process may still write to the chunk that is being decoded. */
static bool may_grow(const struct stream *s, const struct stream_context *ctx)
{
	const struct chunk *chunk = &ctx->chunks[s->first + s->next - 1];

	return ctx->follow && s->next == s->count && !chunk->sealed && !chunk->torn;
}

int stream_more(struct stream *s, struct stream_context *ctx, struct err *err)
{
	uint32_t waiting = s->tail - s->head, want = waiting + BATCH;
	int r = 0;

	if (!waiting)
		s->head = s->tail = 0;
	while (!s->ended && s->tail - s->head < want && !r) {
		if (!s->in_chunk) {
			/* End the batch: the next chunk may begin much later. */
			if (s->tail - s->head > waiting)
				break;
			r = open_chunk(s, ctx, err);
			continue;
		}
		r = fill(s, ctx, COMPACT_MAX + 1, err);
		if (r)
			break;
		if (s->at == s->window_bytes) {
			s->ended = may_grow(s, ctx);
			r = s->ended ? 0 : close_chunk(s, ctx, true);
			continue;
		}
		if ((s->window[s->at] & TRACE_TAG_KIND) == TRACE_EXTENDED) {
			gaps_leave(&s->gaps, s->next - 1, body_at(s, ctx), s->ticks);
			r = step_extended(s, ctx, err);
		} else if (!ctx->skip_blocks || !pass_gap(s, ctx)) {
			gaps_enter(&s->gaps, body_at(s, ctx));
			r = step_compact(s, ctx, want);
		}
		if (r == 1)
			r = close_chunk(s, ctx, false);
	}
	if (r == -ENOMEM)
		err_set(err, r, "%s: out of memory", ctx->source->path);
	return r;
}

void stream_resume(struct stream *s, const struct stream_context *ctx, uint32_t readable)
{
	if (s->in_chunk)
		s->unread += ctx->chunks[s->first + s->next - 1].readable - readable;
	s->ended = !s->in_chunk && s->next == s->count;
}

void stream_rewind(struct stream *s, const struct stream_context *ctx)
{
	for (; s->head < s->tail; s->head++)
		if (s->queue[s->head].kind == REC_EXTENDED)
			free(s->queue[s->head].extended);
	s->head = s->tail = 0;
	s->next = 0;
	s->in_chunk = false;
	s->ended = !s->count;
	s->last_ticks = ctx->chunks[s->first].ticks;
	s->deferred = 0;
	s->floor = ctx->chunks[s->first].type == TRACE_CHUNK_CHECKPOINT ? 0 : ctx->floor;
	s->side_at = s->side_count = 0;
	s->window_bytes = s->at = 0;
	gaps_rewind(&s->gaps);
}

void stream_fini(struct stream *s)
{
	for (; s->head < s->tail; s->head++)
		if (s->queue[s->head].kind == REC_EXTENDED)
			free(s->queue[s->head].extended);
	free(s->queue);
	free(s->window);
	free(s->expected);
	free(s->sides);
	gaps_fini(&s->gaps);
	*s = (struct stream){0};
}
