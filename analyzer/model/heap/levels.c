#include "model/heap/levels.h"

#include <string.h>

#include "model/model.h"
#include "util/num.h"

bool levels_get(const struct levels *l, uint32_t key, uint64_t *out)
{
	if (key >= MODEL_LEVELS || !l->known[key])
		return false;
	*out = l->value[key];
	return true;
}

uint64_t levels_value(const struct levels *l, uint32_t key)
{
	uint64_t value = 0;

	levels_get(l, key, &value);
	return value;
}

void levels_set(struct levels *l, uint32_t key, uint64_t value, uint64_t time_ns)
{
	if (key >= MODEL_LEVELS)
		return;
	l->value[key] = value;
	l->time_ns[key] = time_ns;
	l->known[key] = true;
}

/* Return the size of one thread's stack with its guard, if all stacks take `size`. Stacks of `each`
 * bytes show their own number, since a thread that ended may leave one. */
static uint64_t one_stack(uint64_t size, uint64_t threads, uint64_t each)
{
	uint64_t count = each ? (size + each / 2) / each : 0;

	if (count && size >= count * each && size - count * each <= count * (each / 64))
		return size / count;
	/* the main thread's stack is not included */
	return threads >= 2 ? size / (threads - 1) : 0;
}

void levels_carry_stacks(struct levels *l, uint64_t threads, uint64_t each)
{
	uint64_t before, size, carried, one, left;

	if (!levels_get(l, TRACE_LEVEL_THREADS, &before) || threads < 1 ||
	    !levels_get(l, TRACE_LEVEL_VIRT_THREADS, &size))
		return;
	one = one_stack(size, before, each);
	if (!one || threads > UINT64_MAX / one)
		return;
	left = num_less(size, one * (before - 1));
	carried = one * (threads - 1) + (left > STACKS_KEPT ? left : 0);
	if (carried < size && carried < STACKS_KEPT)
		carried = num_least(size, STACKS_KEPT);
	l->value[TRACE_LEVEL_VIRT_THREADS] = carried;
}

/* --- allocators' own statistics --- */

/* More bytes fit into no address space. */
#define BYTES_MAX (1ull << 56)

/* Return the slot for a new reading in a list of `most`, each of `size` bytes. The last one is the
 * newest reading; the next replaces it, if it is not a stride-th. A full list is halved. */
static void *next_slot(
    void *list, size_t size, uint32_t most, uint32_t *count, uint64_t *seen, uint64_t *stride)
{
	char *at = list;

	if (*count && (*seen)++ % *stride)
		(*count)--;
	if (!*stride)
		*stride = 1;
	if (*count == most) {
		for (uint32_t i = 0; i < most / 2; i++)
			memmove(at + i * size, at + 2 * i * size, size);
		*count = most / 2;
		*stride *= 2;
	}
	return at + size * (*count)++;
}

static void keep(struct allocator_stats *a, const struct allocator_reading *new)
{
	struct allocator_reading *to;

	if (new->arena > BYTES_MAX || new->mmap > BYTES_MAX || new->free > new->arena)
		return;
	to = next_slot(a->at, sizeof(*to), ALLOCATOR_READINGS, &a->count, &a->seen, &a->stride);
	*to = *new;
}

static void note_address(struct model *m, const struct event *e)
{
	struct address_space *a = &m->measured.address;
	struct address_reading *to;
	uint64_t bytes;

	if (!event_level(e, TRACE_LEVEL_VSIZE, &bytes) || bytes > BYTES_MAX)
		return;
	to = next_slot(a->at, sizeof(*to), ADDRESS_READINGS, &a->count, &a->seen, &a->stride);
	*to = (struct address_reading){e->time_ns, bytes, m->blocks.bytes + m->maps.bytes};
}

static void note_malloc(struct model *m, const struct event *e)
{
	struct allocator_reading new = {.time_ns = e->time_ns,
	    .live_bytes = m->blocks.bytes,
	    .live_count = m->blocks.count,
	    .live_variance = m->blocks.variance,
	    .before = base_blocks_left(&m->base),
	    .acquired = m->total.bytes};

	if (!event_level(e, TRACE_LEVEL_MALLOC_ARENA, &new.arena))
		return;
	event_level(e, TRACE_LEVEL_MALLOC_MMAP, &new.mmap);
	new.split = event_level(e, TRACE_LEVEL_MALLOC_FREE, &new.free);
	/* A recorder of samples does not count what was freed of before, but its account does. */
	if (new.before)
		new.before = num_least(new.before,
		    num_less(num_less(allocator_stats_held(&new), new.free), new.live_bytes));
	keep(&m->measured.malloc, &new);
}

/* The same for the interpreter's allocator: its arenas, and their unused part. */
static void note_arenas(struct allocator_stats *a, const struct event *e)
{
	struct allocator_reading new = {.time_ns = e->time_ns, .split = true};
	uint64_t used;

	if (!event_level(e, TRACE_LEVEL_PYTHON_ARENAS, &new.arena) ||
	    !event_level(e, TRACE_LEVEL_PYTHON_USED, &used))
		return;
	/* The used bytes were extrapolated. */
	new.free = used < new.arena ? new.arena - used : 0;
	keep(a, &new);
}

const struct allocator_reading *allocator_stats_at(
    const struct allocator_stats *a, uint64_t time_ns)
{
	const struct allocator_reading *found = NULL;

	for (uint32_t i = 0; i < a->count && a->at[i].time_ns <= time_ns; i++)
		found = &a->at[i];
	return found;
}

uint64_t allocator_stats_held(const struct allocator_reading *reading)
{
	return reading->arena + reading->mmap;
}

uint64_t allocator_stats_beside(const struct allocator_reading *reading)
{
	return num_less(
	    allocator_stats_held(reading), num_sum(reading->live_bytes, reading->before));
}

/* --- samples --- */

/* Note memory inherited from the parent; call it before any other effect. */
static void note_inherited(struct model *m, const struct event *e)
{
	struct measured *s = &m->measured;
	uint64_t anonymous;

	if (s->inherited_known || !event_level(e, TRACE_LEVEL_RSS_ANON, &anonymous))
		return;
	s->inherited_known = true;
	if (m->feed.facts && m->feed.facts(m->feed.self)->forked)
		s->inherited_bytes = num_less(anonymous, m->blocks.bytes + m->maps.bytes);
}

void measured_note(struct model *m, const struct event *e)
{
	struct measured *s = &m->measured;

	base_note(m, e);
	note_malloc(m, e);
	note_arenas(&s->arenas, e);
	note_address(m, e);
	for (uint32_t i = 0; i < e->level_count; i++) {
		const struct event_level *l = &e->levels[i];

		levels_set(&s->levels, l->key, l->value, e->time_ns);
		if (l->key == TRACE_LEVEL_RSS)
			s->at_rss = (struct live_at_rss){e->time_ns,
			    m->blocks.bytes + m->maps.bytes, m->maps.charged_shared_bytes};
		if (l->key == TRACE_LEVEL_RSS && l->value > s->peak_rss)
			s->peak_rss = l->value;
		if ((l->key == TRACE_LEVEL_VSIZE || l->key == TRACE_LEVEL_VSIZE_PEAK) &&
		    l->value > s->peak_vsize)
			s->peak_vsize = l->value;
	}
}

void measured_sample(struct model *m, const struct event *e)
{
	struct measured *s = &m->measured;
	uint64_t live = m->blocks.bytes + m->maps.bytes, rss;

	note_inherited(m, e);
	measured_note(m, e);
	if (live >= s->at_peak_live) {
		s->at_peak = s->levels;
		s->at_peak_live = live;
	}
	if (levels_get(&s->levels, TRACE_LEVEL_RSS, &rss))
		timeline_rss(&m->timeline, e->time_ns, live, rss);
}

void measured_freeze_more(struct measured *s, const struct event *e, uint64_t since_ns)
{
	for (uint32_t i = 0; i < e->level_count; i++)
		if (e->levels[i].key < MODEL_LEVELS &&
		    s->at_failure.time_ns[e->levels[i].key] < since_ns)
			levels_set(
			    &s->at_failure, e->levels[i].key, e->levels[i].value, e->time_ns);
}
