#include "trace/checkpoint.h"

#include <stdlib.h>

struct checkpoint_slots checkpoint_slots_read(struct cursor *c)
{
	struct checkpoint_slots slots;

	for (size_t i = 0; i < TRACE_CHECKPOINT_SLOTS; i++) {
		slots.slot[i].number = (uint32_t)cursor_fixed(c, 4);
		slots.slot[i].parts = (uint32_t)cursor_fixed(c, 4);
		slots.slot[i].ticks = cursor_fixed(c, 8);
	}
	return slots;
}

static const struct trace_checkpoint *newest(
    const struct checkpoint_slots *slots, const struct trace_checkpoint *below)
{
	const struct trace_checkpoint *found = NULL;

	for (size_t i = 0; i < TRACE_CHECKPOINT_SLOTS; i++) {
		const struct trace_checkpoint *c = &slots->slot[i];

		if (c->number && (!below || c->number < below->number) &&
		    (!found || c->number > found->number))
			found = c;
	}
	return found;
}

uint32_t checkpoint_newest(const struct checkpoint_slots *slots)
{
	const struct trace_checkpoint *c = newest(slots, NULL);

	return c ? c->number : 0;
}

static int by_sequence(const void *a, const void *b)
{
	const struct chunk *x = *(const struct chunk *const *)a;
	const struct chunk *y = *(const struct chunk *const *)b;

	return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

static bool is_part(const struct chunk *c, uint32_t number)
{
	return c->type == TRACE_CHUNK_CHECKPOINT && c->tid == number;
}

/* `list` is scratch, with room for all chunks. */
static bool is_whole(const struct trace_checkpoint *c, const struct chunk *chunks, size_t count,
    const struct chunk **list)
{
	size_t n = 0;

	if (!c->parts || c->ticks == UINT64_MAX)
		return false;
	for (size_t i = 0; i < count; i++)
		if (is_part(&chunks[i], c->number))
			list[n++] = &chunks[i];
	if (n != c->parts)
		return false;
	qsort(list, n, sizeof(*list), by_sequence);
	for (size_t i = 0; i < n; i++)
		if (list[i]->sequence != i || !list[i]->sealed || list[i]->torn)
			return false;
	return true;
}

void checkpoint_choose(const struct checkpoint_slots *slots, struct chunk *chunks, size_t *count,
    struct trace_checkpoint_facts *out, uint64_t *floor, uint64_t *until)
{
	const struct trace_checkpoint *c = newest(slots, NULL), *latest = c;
	const struct chunk **list = NULL;
	size_t kept = 0, parts = 0;

	*out = (struct trace_checkpoint_facts){0};
	*floor = *until = 0;
	for (size_t i = 0; i < *count; i++)
		parts += chunks[i].type == TRACE_CHUNK_CHECKPOINT;
	if (c && parts)
		list = malloc(parts * sizeof(*list));
	while (c && (!list || !is_whole(c, chunks, *count, list)))
		c = newest(slots, c);
	free(list);
	if (c) {
		out->number = c->number;
		out->parts = c->parts;
		*floor = c->ticks + 1;
	}
	if (latest != c)
		out->damaged = latest->number;
	if (latest)
		*until = latest->ticks;
	for (size_t i = 0; i < *count; i++) {
		if (chunks[i].type == TRACE_CHUNK_CHECKPOINT &&
		    !(c && is_part(&chunks[i], c->number))) {
			out->unfinished += !latest || chunks[i].tid > latest->number;
			continue;
		}
		chunks[kept++] = chunks[i];
	}
	*count = kept;
}
