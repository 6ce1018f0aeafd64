/*
 * host_slack.c - see host_slack.h. How much is free malloc itself has said; where it lies, the live
 * blocks show: between two of them that lie in one stretch of its memory.
 */
#include "verdict/host_slack.h"

#include <errno.h>
#include <stdlib.h>

#include "util/sort.h"
#include "util/vec.h"
#include "verdict/arenas.h"
#include "verdict/malloc_held.h"

/* Malloc's memory is in stretches that begin at multiples of this (glibc's heaps of a thread), or
 * are smaller; two blocks of different ones have no hole between them. */
#define STRETCH_SHIFT 26u
/* A block above this may have a mapping of its own, which ends where it does. */
#define OWN_MAPPING (128u << 10)
/* Headers and rounding are less. */
#define HOLE_MIN 128u

/* Malloc asks the kernel for more than the block: a pad at the top of its heap, whole pages. */
#define BELOW_MIN (1u << 20)

/* Blocks, by address. */
typedef VEC(struct sort_item) pieces_t;

static int gather(void *arg, const struct block *b)
{
	pieces_t *pieces = arg;

	if (b->size >= OWN_MAPPING && (b->address & 0xfff) == 0x10)
		return 0;
	return vec_push(pieces, ((struct sort_item){b->address, b}));
}

/* Bytes of holes beside each place's blocks. */
static void find_holes(
    const pieces_t *pieces, const struct places *places, uint64_t *beside, struct scene_slack *out)
{
	for (size_t i = 1; i < pieces->count; i++) {
		const struct block *a = pieces->items[i - 1].value, *b = pieces->items[i].value;
		uint64_t end = a->address + a->size;
		uint64_t size = b->address > end ? b->address - end : 0;
		uint32_t before, after;

		if (size < HOLE_MIN || end >> STRETCH_SHIFT != b->address >> STRETCH_SHIFT)
			continue;
		before = places_of_stack(places, SITE_HEAP, a->stack);
		after = places_of_stack(places, SITE_HEAP, b->stack);
		out->holes++;
		if (size > out->largest)
			out->largest = size;
		if (before != PLACE_NONE)
			beside[before] += size;
		if (after != PLACE_NONE && after != before)
			beside[after] += size;
	}
}

static uint32_t most_of(const uint64_t *bytes, uint32_t count, uint64_t least)
{
	uint32_t most = PLACE_NONE;

	for (uint32_t i = 0; i < count; i++)
		if (bytes[i] > least) {
			least = bytes[i];
			most = i;
		}
	return most;
}

/* The place whose arenas have most free. */
static uint32_t emptiest(const struct places *places)
{
	uint32_t most = PLACE_NONE;

	for (uint32_t i = 0; i < places->count; i++)
		if (place_unused(&places->list[i]) >
		    (most == PLACE_NONE ? 0 : place_unused(&places->list[most])))
			most = i;
	return most;
}

int host_slack_read(const struct feed *feed, const struct model *m, const struct places *places,
    const struct ledger *ledger, struct scene_slack *out)
{
	uint64_t *of_place = calloc(places->count + 1u, sizeof(*of_place));
	pieces_t pieces = {0};
	struct malloc_held held;
	int rc = -ENOMEM;

	*out = (struct scene_slack){.pinned_by = PLACE_NONE};
	if (!of_place || !feed->each_live)
		goto out;
	rc = 0;
	out->reserved = ledger_get(ledger, LEDGER_KEPT);
	out->arenas = ledger_get(ledger, LEDGER_ARENAS_FREE);
	/* Of an allocator that tells only the whole, it is all that is in no block; of one that was
	 * not asked nothing is known. */
	malloc_held(m, places, 0, &held);
	if (held.known && !held.split)
		out->bytes = ledger_get(ledger, LEDGER_UNSPLIT);
	out->arenas_steady = out->arenas ? arenas_steady(m, places->moment_ns) : 0;
	out->bytes += ledger_get(ledger, LEDGER_FREE_LISTS) + out->reserved + out->arenas;
	out->known = out->bytes > 0;
	out->below = ledger_get(ledger, "free");
	out->below -= out->below < BELOW_MIN ? out->below : BELOW_MIN;
	if (!out->known)
		goto out;
	/* Between the blocks of a sample lie those that are not in it. */
	if (feed->facts(feed->self)->mode != TRACE_MODE_SAMPLED)
		rc = feed->each_live(feed->self, gather, &pieces);
	if (rc)
		goto out;
	sort_items(pieces.items, pieces.count);
	find_holes(&pieces, places, of_place, out);
	if (out->largest > out->bytes - out->reserved - out->arenas)
		out->largest = out->bytes - out->reserved - out->arenas;
	if (out->arenas > out->bytes / 2) {
		out->pinned_by = emptiest(places);
		goto out;
	}
	/* Of the holes, those that are known to lie there must be a good part. */
	out->pinned_by = most_of(of_place, places->count, out->bytes / 8);
	if (out->pinned_by == PLACE_NONE) {
		for (uint32_t i = 0; i < places->count; i++) {
			const struct place *p = &places->list[i];

			of_place[i] = p->total_bytes > p->live_bytes &&
					      p->total_bytes / OWN_MAPPING < p->total_count
					  ? p->total_bytes - p->live_bytes
					  : 0;
		}
		out->pinned_by = most_of(of_place, places->count, 0);
	}
out:
	free(pieces.items);
	free(of_place);
	return rc;
}

uint64_t host_slack_at(const struct model *m, uint64_t time_ns)
{
	const struct answer *a = answers_at(&m->answers, time_ns);

	return (!a ? 0 : a->split ? a->free : answer_beside(a)) + arenas_free_at(m, time_ns);
}
