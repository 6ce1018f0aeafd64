#include "model/heap/allocator_stats.h"

#include <stddef.h>

#include "trace/event.h"

/* More bytes fit into no address space. */
#define BYTES_MAX (1ull << 56)

static void keep(struct allocator_stats *a, const struct allocator_reading *new)
{
	if (new->arena > BYTES_MAX || new->mmap > BYTES_MAX || new->free > new->arena)
		return;
	/* The last entry is the newest reading; the next replaces it, if it is not a stride-th. */
	if (a->count && a->seen++ % a->stride)
		a->count--;
	if (!a->stride)
		a->stride = 1;
	if (a->count == ALLOCATOR_READINGS) {
		for (uint32_t i = 0; i < ALLOCATOR_READINGS / 2; i++)
			a->at[i] = a->at[2 * i];
		a->count = ALLOCATOR_READINGS / 2;
		a->stride *= 2;
	}
	a->at[a->count++] = *new;
}

void allocator_stats_note(
    struct allocator_stats *a, const struct event *e, const struct allocator_reading *now)
{
	struct allocator_reading new = *now;

	if (!event_level(e, TRACE_LEVEL_MALLOC_ARENA, &new.arena))
		return;
	new.time_ns = e->time_ns;
	event_level(e, TRACE_LEVEL_MALLOC_MMAP, &new.mmap);
	new.split = event_level(e, TRACE_LEVEL_MALLOC_FREE, &new.free);
	keep(a, &new);
}

void allocator_stats_note_arenas(struct allocator_stats *a, const struct event *e)
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

uint64_t allocator_stats_held(const struct allocator_reading *answer)
{
	return answer->arena + answer->mmap;
}

uint64_t allocator_stats_beside(const struct allocator_reading *answer)
{
	uint64_t held = allocator_stats_held(answer);

	return held > answer->live_bytes ? held - answer->live_bytes : 0;
}
