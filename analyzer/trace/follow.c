/*
 * follow.c - reads on in the trace of a running process. Each look lists the chunks and definitions
 * that are new, and lets the streams go on where they ended. A thread commits an event at once, so
 * those before the moment of the look are complete, and events after it wait for the next one: the
 * order of threads is the same as in one pass over the whole file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "trace/reader.h"
#include "util/map.h"
#include "util/num.h"
#include "util/tuned.h"
#include "whyoom/trace.h"

TUNED(uint64_t, LAG_NS, 400000000u,
    "a thread that is descheduled between an event's time and its commit is back within four "
    "tenths of a second");

/* A definition chunk, and its body as it was read last. */
struct followed_chunk {
	uint64_t offset;
	uint32_t committed; /* as its header said then */
	uint32_t bytes; /* of the body */
	uint8_t *body; /* NULL: not read yet */
	uint8_t *fresh; /* during a look: what is new in it */
};

struct follow {
	struct map known; /* chunks by offset: bytes */
	VEC(struct followed_chunk) definitions;
	uint64_t ticks_hz;
};

static int know(struct follow *f, uint64_t offset, uint64_t bytes)
{
	uint64_t *at = map_put(&f->known, offset);

	if (!at)
		return -ENOMEM;
	*at = bytes;
	return 0;
}

static int add_definitions(struct follow *f, const struct chunk *c)
{
	return vec_push(&f->definitions, (struct followed_chunk){.offset = c->offset});
}

/* Read the chunk again, and keep what is new in it as `fresh`. A copy for each is held, as a record
 * in the middle may be completed after one behind it. */
static int read_fresh(struct trace *t, struct followed_chunk *d, struct err *err)
{
	struct chunk c;
	bool foreign;
	uint8_t *body;
	size_t got;
	int r = trace_read_chunk(t, d->offset, &c, &foreign, err);

	/* Its header is being written: the next look reads it. */
	if (r || c.distrusted || (d->body && t->checks && c.committed == d->committed))
		return r < 0 ? r : 0;
	d->committed = c.committed;
	body = malloc(c.readable);
	d->fresh = malloc(c.readable);
	if (!body || !d->fresh) {
		free(body);
		return -ENOMEM;
	}
	r = source_read(
	    &t->source, d->offset + sizeof(struct trace_chunk), body, c.readable, &got, err);
	memset(body + got, 0, c.readable - got);
	memcpy(d->fresh, body, c.readable);
	if (d->body)
		defs_forget(
		    d->fresh, d->body, c.readable < d->bytes ? c.readable : d->bytes, t->checks);
	free(d->body);
	d->body = body;
	d->bytes = c.readable;
	return r;
}

static int read_definitions(struct trace *t, struct err *err)
{
	struct follow *f = t->follow;
	bool torn, any = false;
	int r = 0;

	for (size_t i = 0; i < f->definitions.count && !r; i++)
		r = read_fresh(t, &f->definitions.items[i], err);
	for (int stacks = 0; stacks < 2; stacks++)
		for (size_t i = 0; i < f->definitions.count && !r; i++) {
			struct followed_chunk *d = &f->definitions.items[i];

			if (!d->fresh)
				continue;
			any = true;
			r = defs_read(&t->defs, d->fresh, d->bytes, stacks, &torn);
		}
	if (!r && any)
		r = defs_pause(&t->defs);
	for (size_t i = 0; i < f->definitions.count; i++) {
		free(f->definitions.items[i].fresh);
		f->definitions.items[i].fresh = NULL;
	}
	free(t->defs.stacks.order); /* of fewer stacks */
	t->defs.stacks.order = NULL;
	return r;
}

int follow_begin(struct trace *t, const struct chunk *definitions, size_t count, uint64_t ticks_hz,
    struct err *err)
{
	struct follow *f = t->follow = calloc(1, sizeof(*f));
	int r = f ? 0 : -ENOMEM;

	map_seed();
	t->context.follow = true;
	for (size_t i = 0; i < t->chunks.count && !r; i++)
		r = know(f, t->chunks.items[i].offset, t->chunks.items[i].bytes);
	for (size_t i = 0; i < count && !r; i++) {
		r = know(f, definitions[i].offset, definitions[i].bytes);
		if (!r)
			r = add_definitions(f, &definitions[i]);
	}
	if (!r)
		f->ticks_hz = ticks_hz;
	return r ? r : read_definitions(t, err);
}

void follow_end(struct trace *t)
{
	struct follow *f = t->follow;

	if (!f)
		return;
	for (size_t i = 0; i < f->definitions.count; i++)
		free(f->definitions.items[i].body);
	vec_free(&f->definitions);
	map_free(&f->known);
	free(f);
	t->follow = NULL;
}

/* Add a chunk, unless the next look must see it again: it is empty, or being written. */
static int take_chunk(struct trace *t, const struct chunk *c)
{
	struct follow *f = t->follow;
	int r;

	if (c->type == TRACE_CHUNK_DEFINITIONS)
		r = add_definitions(f, c);
	else if ((c->type == TRACE_CHUNK_EVENTS || c->type == TRACE_CHUNK_SHARED) &&
		 c->readable + c->side_count)
		r = vec_push(&t->chunks, *c);
	else
		return 0;
	if (!r)
		r = know(f, c->offset, c->bytes);
	/* The pairs' times count from the start after the first clock_finish(). */
	if (!r)
		r = clock_add(&t->clock, c->ticks, num_less(c->mono_ns, t->facts.start_mono_ns));
	t->facts.event_bytes += c->type == TRACE_CHUNK_DEFINITIONS ? 0 : c->readable;
	return r;
}

static int list_new(struct trace *t, struct err *err)
{
	uint64_t at = TRACE_SLOT_BYTES, data;
	int r = 0;

	while (!r && at + sizeof(struct trace_chunk) <= t->source.size) {
		const uint64_t *bytes = map_find(&t->follow->known, at);
		struct chunk c;
		bool foreign;

		if (bytes) {
			at += *bytes;
			continue;
		}
		r = trace_read_chunk(t, at, &c, &foreign, err);
		if (r < 0)
			return r;
		if (r || c.distrusted || c.torn) {
			r = 0;
			at += TRACE_SLOT_BYTES;
			data = source_next_data(&t->source, at);
			if (data > at)
				at = data - data % TRACE_SLOT_BYTES;
			continue;
		}
		r = take_chunk(t, &c);
		at += c.bytes;
	}
	return r;
}

/* True if the chunk began before the checkpoint: the program may be about to give its slots back,
 * and another chunk may take them. */
static bool is_replaced(const struct trace *t, const struct chunk *c)
{
	return c->ticks < t->context.floor && c->type != TRACE_CHUNK_CHECKPOINT;
}

static bool is_another(const struct chunk *now, const struct chunk *c)
{
	return now->type != c->type || now->thread != c->thread || now->sequence != c->sequence ||
	       now->ticks != c->ticks;
}

/* Read a chunk's header again. 1: its slots were given back, so all must be read again. */
static int see_growth(struct trace *t, struct chunk *c, struct err *err)
{
	struct chunk now;
	bool foreign;
	int r = trace_read_chunk(t, c->offset, &now, &foreign, err);

	if (r < 0)
		return r;
	if (r)
		return is_replaced(t, c);
	/* Contradictions are of a header that is being written. */
	if (now.distrusted || now.torn)
		return 0;
	if (is_another(&now, c))
		return 1;
	if (now.readable < c->readable)
		return 0;
	t->facts.event_bytes += now.readable - c->readable;
	/* A thread that ended gave the rest of its chunk to others. */
	if (now.bytes != c->bytes && know(t->follow, c->offset, now.bytes))
		return -ENOMEM;
	c->bytes = now.bytes;
	c->readable = now.readable;
	c->committed = now.committed;
	c->sealed = now.sealed;
	c->checksum = now.checksum;
	c->side_count = now.side_count;
	return 0;
}

/* What identifies a stream, and where it is. */
struct old_stream {
	uint64_t first, decoding; /* offsets of chunks */
	uint32_t readable;
};

static void note_streams(const struct trace *t, struct old_stream *old)
{
	for (size_t i = 0; i < t->stream_count; i++) {
		const struct stream *s = &t->streams[i];
		const struct chunk *c = &t->chunks.items[s->first];

		old[i] = (struct old_stream){.first = c->offset};
		if (!s->next)
			continue;
		c += s->next - 1;
		old[i].decoding = c->offset;
		old[i].readable = c->readable;
	}
}

/* Read the headers of all chunks that may have grown, or become shorter. */
static int see_chunks(struct trace *t, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < t->chunks.count && !r; i++) {
		struct chunk *c = &t->chunks.items[i];

		if (!c->sealed || is_replaced(t, c))
			r = see_growth(t, c, err);
	}
	return r;
}

/* True if a chunk was taken for a dead process's, and read to its end, and has grown. */
static bool ended_early(const struct trace *t, const struct old_stream *old)
{
	for (size_t i = 0; i < t->stream_count; i++) {
		const struct stream *s = &t->streams[i];

		if (s->next && !s->in_chunk &&
		    t->chunks.items[s->first + s->next - 1].readable != old[i].readable)
			return true;
	}
	return false;
}

/* Let an old stream go on as the new one that has its chunks. 0; 1: a chunk is there that belongs
 * before what was read. */
static int carry_on(
    struct trace *t, struct stream *old, struct stream *s, const struct old_stream *was)
{
	uint32_t first = s->first, count = s->count;

	*s = *old;
	*old = (struct stream){0};
	s->first = first;
	s->count = count;
	if (s->next > count ||
	    (s->next && t->chunks.items[first + s->next - 1].offset != was->decoding))
		return 1;
	stream_resume(s, &t->context, was->readable);
	return 0;
}

static int make_streams(struct trace *t, size_t count, const struct old_stream *old)
{
	struct stream *streams = calloc(count + 1, sizeof(*streams)), *was = t->streams;
	struct merge_head *heap = calloc(count + 1, sizeof(*heap));
	struct map by_first = {0}; /* 1 + index of the old one */
	size_t carried = 0;
	int r = streams && heap ? 0 : -ENOMEM;

	for (size_t i = 0; i < t->stream_count && !r; i++) {
		uint64_t *at = map_put(&by_first, old[i].first);

		r = at ? 0 : -ENOMEM;
		if (at)
			*at = i + 1;
	}
	if (r) {
		map_free(&by_first);
		free(streams);
		free(heap);
		return r;
	}
	t->context.chunks = t->chunks.items;
	trace_group_chunks(t, streams);
	for (size_t i = 0; i < count && !r; i++) {
		const struct chunk *c = &t->chunks.items[streams[i].first];
		const uint64_t *at = map_find(&by_first, c->offset);

		if (at) {
			r = carry_on(t, &was[*at - 1], &streams[i], &old[*at - 1]);
			carried++;
			continue;
		}
		if (t->started)
			stream_rewind(&streams[i], &t->context);
	}
	if (!r && carried < t->stream_count)
		r = 1;
	for (size_t i = 0; i < t->stream_count; i++)
		stream_fini(&was[i]);
	map_free(&by_first);
	free(was);
	free(t->heap);
	t->streams = streams;
	t->stream_count = count;
	t->heap = heap;
	return r;
}

/* Return the tick of the moment before which all events are committed. */
static uint64_t horizon_of(const struct trace *t)
{
	const struct clock_pair *last = &t->clock.pairs.items[t->clock.pairs.count - 1];
	struct timespec now;
	uint64_t ns;

	if (!trace_is_running(t) || clock_gettime(CLOCK_MONOTONIC, &now))
		return UINT64_MAX;
	ns = num_less((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec,
	    t->facts.start_mono_ns + LAG_NS);
	if (ns < last->ns)
		return last->ticks > clock_ticks_of(&t->clock, last->ns - ns)
			   ? last->ticks - clock_ticks_of(&t->clock, last->ns - ns)
			   : 0;
	return last->ticks + clock_ticks_of(&t->clock, ns - last->ns);
}

int trace_follow_on(struct trace *t, struct err *err)
{
	struct header_tail tail;
	struct old_stream *old = calloc(t->stream_count + 1, sizeof(*old));
	uint64_t horizon, last_ns = t->facts.last_ns, events = t->facts.event_bytes;
	int r = old ? source_refresh(&t->source, err) : -ENOMEM;

	damage_clear(&t->damage); /* what a running process writes is not damaged */
	if (t->started && clock_ns(&t->clock, t->last_ticks) > last_ns)
		last_ns = clock_ns(&t->clock, t->last_ticks);
	horizon = horizon_of(t);
	if (!r)
		r = trace_read_header(t, &tail, err);
	t->facts.last_ns = last_ns;
	t->facts.event_bytes = events;
	if (!r && checkpoint_newest(&tail.slots) != t->newest)
		r = 1;
	if (!r) {
		note_streams(t, old);
		r = see_chunks(t, err);
	}
	if (!r)
		r = list_new(t, err);
	/* Once more: what precedes one of the new chunks is complete. */
	if (!r)
		r = see_chunks(t, err);
	if (!r && ended_early(t, old))
		r = 1;
	if (!r)
		r = read_definitions(t, err);
	if (!r) {
		clock_finish(&t->clock, 0, t->follow->ticks_hz);
		r = make_streams(t, trace_order_chunks(t), old);
	}
	if (!r) {
		t->horizon = horizon;
		t->facts.running = horizon != UINT64_MAX;
		/* What a dead process left unsealed is complete. */
		t->context.follow = t->facts.running;
		if (t->started)
			merge_resume(t);
	}
	source_release(&t->source);
	free(old);
	return r == -ENOMEM ? err_set(err, r, "%s: out of memory", t->source.path) : r;
}
