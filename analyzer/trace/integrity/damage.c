#include "trace/integrity/damage.h"

#include <stdlib.h>
#include <string.h>

#include "trace/trace.h"
#include "whyoom/trace.h"

const char *trace_damage_word(enum trace_damage_kind kind)
{
	static const char *const words[] = {
	    [TRACE_DAMAGE_HEADER] = "header",
	    [TRACE_DAMAGE_SHORT] = "short",
	    [TRACE_DAMAGE_LOST] = "lost",
	    [TRACE_DAMAGE_CHUNK] = "chunk",
	    [TRACE_DAMAGE_EVENTS] = "events",
	    [TRACE_DAMAGE_CHECKSUM] = "checksum",
	    [TRACE_DAMAGE_REPEATED] = "repeated",
	    [TRACE_DAMAGE_DEFINITIONS] = "definitions",
	    [TRACE_DAMAGE_UNDEFINED] = "undefined",
	    [TRACE_DAMAGE_CHECKPOINT] = "checkpoint",
	    [TRACE_DAMAGE_UNREADABLE] = "unreadable",
	};

	return (unsigned)kind < TRACE_DAMAGE_KINDS ? words[kind] : "unknown";
}

void damage_clear(struct damage *d)
{
	d->list.count = d->chunks.count = d->gaps.count = 0;
	d->more = d->bytes = d->lost = d->kinds = 0;
	map_clear(&d->identities);
}

void damage_fini(struct damage *d)
{
	vec_free(&d->list);
	vec_free(&d->chunks);
	vec_free(&d->gaps);
	vec_free(&d->places);
	map_free(&d->identities);
}

void damage_note(struct damage *d, unsigned kind, const struct damage_where *where)
{
	struct damage_entry entry = {.kind = kind, .where = *where};

	d->kinds |= 1u << kind;
	d->bytes += where->bytes;
	if (d->list.count >= DAMAGE_PLACES || vec_push(&d->list, entry))
		d->more++;
}

int damage_chunk(struct damage *d, const struct damage_chunk *chunk, uint64_t identity)
{
	uint64_t *known = map_put(&d->identities, identity);

	if (!known)
		return -ENOMEM;
	if ((*known)++) {
		damage_note(d, TRACE_DAMAGE_REPEATED,
		    &(struct damage_where){.offset = chunk->offset,
			.thread = chunk->thread,
			.sequence = chunk->sequence});
		return 1;
	}
	return vec_push(&d->chunks, *chunk);
}

int damage_gap(struct damage *d, uint64_t from, uint64_t to, bool foreign)
{
	struct damage_gap *last = d->gaps.count ? &d->gaps.items[d->gaps.count - 1] : NULL;

	if (last && last->to == from && last->foreign == foreign) {
		last->to = to;
		return 0;
	}
	return vec_push(&d->gaps, (struct damage_gap){from, to, foreign});
}

static int by_thread(const void *a, const void *b)
{
	const struct damage_chunk *x = a, *y = b;

	if (x->type != y->type)
		return x->type < y->type ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->sequence != y->sequence)
		return x->sequence < y->sequence ? -1 : 1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Find gaps in threads' own chunks; return the missing bytes, about. A chunk is full when the next
 * one is claimed; chunks that were full before the checkpoint began have been replaced. */
static uint64_t thread_gaps(struct damage *d, uint64_t until)
{
	const struct damage_chunk *before = NULL;
	uint64_t bytes = 0;

	for (size_t i = 0; i < d->chunks.count; i++) {
		const struct damage_chunk *c = &d->chunks.items[i];
		uint32_t expected;

		if (c->type != TRACE_CHUNK_EVENTS)
			continue;
		if (before && before->thread != c->thread)
			before = NULL;
		expected = before ? before->sequence + 1 : 0;
		/* How many chunks were replaced before the thread's first one is unknown. */
		if (c->sequence > expected && c->ticks > until && (before || !until)) {
			uint64_t missing = c->sequence - expected;
			uint64_t size =
			    missing > d->chunks.count + d->gaps.count ? 0 : TRACE_CHUNK_BYTES;

			damage_note(d, TRACE_DAMAGE_LOST,
			    &(struct damage_where){.thread = c->thread,
				.sequence = expected,
				.from = before ? before->ticks : 0,
				.to = c->ticks});
			bytes += missing * size;
		}
		before = c;
	}
	return bytes;
}

/* Find gaps in shared chunks. Two threads that take one at a time may give them the same number;
 * the highest number still is the count. */
static uint64_t shared_gaps(struct damage *d)
{
	uint32_t found = 0, made = 0;

	for (size_t i = 0; i < d->chunks.count; i++) {
		const struct damage_chunk *c = &d->chunks.items[i];

		if (c->type != TRACE_CHUNK_SHARED)
			continue;
		found++;
		if (c->sequence >= made)
			made = c->sequence + 1;
	}
	if (made <= found || made - found > TRACE_CHUNK_BYTES)
		return 0;
	damage_note(d, TRACE_DAMAGE_LOST, &(struct damage_where){0});
	return (uint64_t)(made - found) * TRACE_FIRST_CHUNK_BYTES;
}

/* Note the places where that many bytes of chunks may have been. In an undamaged file, claimed but
 * unwritten space is all zeros; so gaps with other bytes come first. */
static void note_gaps(struct damage *d, uint64_t bytes)
{
	uint64_t foreign = 0;

	for (size_t i = 0; i < d->gaps.count; i++)
		if (d->gaps.items[i].foreign)
			foreign += d->gaps.items[i].to - d->gaps.items[i].from;
	for (size_t i = 0; i < d->gaps.count; i++) {
		const struct damage_gap *g = &d->gaps.items[i];

		if (g->foreign || foreign < bytes)
			damage_note(
			    d, TRACE_DAMAGE_LOST, &(struct damage_where){.offset = g->from});
	}
}

void damage_chunks_end(struct damage *d, const struct damage_file *file)
{
	uint64_t found = 0, foreign = 0, missing, lost;

	if (d->chunks.count)
		qsort(d->chunks.items, d->chunks.count, sizeof(*d->chunks.items), by_thread);
	for (size_t i = 0; i < d->chunks.count; i++)
		found += d->chunks.items[i].bytes;
	for (size_t i = 0; i < d->gaps.count; i++)
		if (d->gaps.items[i].foreign)
			foreign += d->gaps.items[i].to - d->gaps.items[i].from;
	if (file->chunk_bytes) {
		lost = file->chunk_bytes > found ? file->chunk_bytes - found : 0;
		if (lost)
			thread_gaps(d, file->until);
	} else {
		missing = thread_gaps(d, file->until);
		if (!file->until)
			missing += shared_gaps(d);
		lost = missing > foreign ? missing : foreign;
		/* A killed process may have claimed space that it never got. */
		if (file->ended && file->claimed > file->size && !lost)
			lost = file->claimed - file->size;
	}
	if (!lost)
		return;
	note_gaps(d, lost);
	/* Bytes beyond the end have no other place. */
	if (file->claimed > file->size || !(d->kinds & 1u << TRACE_DAMAGE_LOST))
		damage_note(d, TRACE_DAMAGE_SHORT, &(struct damage_where){.offset = file->size});
	d->bytes += lost;
	d->lost += lost;
}

static int by_offset(const void *a, const void *b)
{
	const struct trace_damage_place *x = a, *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

static void add_place(struct damage *d, const struct damage_entry *e, struct clock *clock,
    uint64_t last_ns, struct trace_damage *out)
{
	struct trace_damage_place place = {.kind = (enum trace_damage_kind)e->kind,
	    .offset = e->where.offset,
	    .bytes = e->where.bytes,
	    .thread = e->where.thread,
	    .sequence = e->where.sequence,
	    .from_ns = e->where.from ? clock_search(clock, e->where.from) : 0,
	    .to_ns = last_ns};

	if (e->where.to && e->where.to != DAMAGE_LATEST)
		place.to_ns = clock_search(clock, e->where.to);
	if (place.to_ns > last_ns)
		place.to_ns = last_ns;
	if (place.from_ns > place.to_ns)
		place.from_ns = place.to_ns;
	if (vec_push(&d->places, place)) {
		out->more++;
		return;
	}
	/* A gap's place tells no time; the neighbouring chunks of the thread do. */
	if ((place.kind == TRACE_DAMAGE_LOST || place.kind == TRACE_DAMAGE_SHORT) && !place.thread)
		return;
	if (place.kind == TRACE_DAMAGE_HEADER)
		return;
	if (!out->to_ns || place.from_ns < out->from_ns)
		out->from_ns = place.from_ns;
	if (place.to_ns > out->to_ns)
		out->to_ns = place.to_ns;
}

/* Count the named threads; 0: any thread may be affected. */
static uint32_t count_threads(const struct damage *d)
{
	uint32_t count = 0;

	for (size_t i = 0; i < d->places.count; i++) {
		const struct trace_damage_place *p = &d->places.items[i];
		bool first = p->thread != 0;

		for (size_t k = 0; k < i && first; k++)
			first = d->places.items[k].thread != p->thread;
		count += first;
	}
	return count;
}

void damage_publish(struct damage *d, struct clock *clock, uint64_t last_ns, uint64_t recorded,
    double undefined, struct trace_damage *out)
{
	double all = (double)d->lost + (double)recorded, share = 0;

	*out = (struct trace_damage){.more = d->more, .bytes = d->bytes, .kinds = d->kinds};
	d->places.count = 0;
	for (size_t i = 0; i < d->list.count; i++)
		add_place(d, &d->list.items[i], clock, last_ns, out);
	if (!d->places.count)
		return;
	qsort(d->places.items, d->places.count, sizeof(*d->places.items), by_offset);
	out->places = d->places.items;
	out->count = d->places.count;
	out->threads = count_threads(d);
	if (!out->to_ns)
		out->to_ns = last_ns; /* it may be any time */
	if (out->bytes)
		share = all > (double)out->bytes ? (double)out->bytes / all : 1;
	out->share = 1 - (1 - share) * (1 - undefined);
}
