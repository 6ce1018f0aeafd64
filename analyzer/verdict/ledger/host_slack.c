/*
 * host_slack.c - see host_slack.h. How much is free malloc itself has said; where it lies, the live
 * blocks show: between two of them that lie in one stretch of its memory.
 */
#include "verdict/ledger/host_slack.h"

#include <errno.h>
#include <stdlib.h>

#include "util/sort.h"
#include "util/vec.h"
#include "verdict/ledger/arenas.h"
#include "verdict/ledger/malloc_held.h"

/* Malloc's memory is in stretches that begin at multiples of this (glibc's heaps of a thread), or
 * are smaller; two blocks of different ones have no hole between them. */
#define STRETCH_SHIFT 26u
/* A block above this may have a mapping of its own, which ends where it does. */
#define OWN_MAPPING (128u << 10)
/* Headers and rounding are less. */
#define HOLE_MIN 128u

/* Malloc asks the kernel for more than the block: a pad at the top of its heap, whole pages. */
#define BELOW_MIN (1u << 20)

/* Blocks are put in order a slice of the address space at a time: all at once would take a quarter
 * of what they take themselves. Where the slices begin, some of the blocks say. */
#define SLICES 8u
#define SLICE_LEAST 32768u /* blocks: fewer are not divided */
#define SAMPLE_EVERY 64u

struct holes {
	const struct callsites *callsites;
	uint64_t *beside; /* of each place */
	struct scene_slack *out;
	VEC(struct sort_item) pieces; /* blocks of the slice */
	uint64_t from, until; /* its addresses, the last one included */
	uint64_t seen; /* blocks, in taking the sample */
	const struct block *last; /* of the slices before; NULL: none */
};

static bool is_of_heap(const struct block *b)
{
	return b->size < OWN_MAPPING || (b->address & 0xfff) != 0x10;
}

static int sample(void *arg, const struct block *b)
{
	struct holes *h = arg;

	if (!is_of_heap(b) || h->seen++ % SAMPLE_EVERY)
		return 0;
	return vec_push(&h->pieces, ((struct sort_item){b->address, b}));
}

static int gather(void *arg, const struct block *b)
{
	struct holes *h = arg;

	if (b->address < h->from || b->address > h->until || !is_of_heap(b))
		return 0;
	return vec_push(&h->pieces, ((struct sort_item){b->address, b}));
}

/* What lies between two neighbours, beside the blocks of each one's place. */
static void look_between(struct holes *h, const struct block *a, const struct block *b)
{
	uint64_t end = a->address + a->size;
	uint64_t size = b->address > end ? b->address - end : 0;
	uint32_t before, after;

	if (size < HOLE_MIN || end >> STRETCH_SHIFT != b->address >> STRETCH_SHIFT)
		return;
	before = callsites_of_stack(h->callsites, STACK_STATS_HEAP, a->stack);
	after = callsites_of_stack(h->callsites, STACK_STATS_HEAP, b->stack);
	h->out->holes++;
	if (size > h->out->largest)
		h->out->largest = size;
	if (before != CALLSITE_NONE)
		h->beside[before] += size;
	if (after != CALLSITE_NONE && after != before)
		h->beside[after] += size;
}

static int read_slice(struct holes *h, const struct feed *feed)
{
	int rc;

	h->pieces.count = 0;
	rc = feed->each_live(feed->self, gather, h);
	if (rc)
		return rc;
	sort_items(h->pieces.items, h->pieces.count);
	for (size_t i = 0; i < h->pieces.count; i++) {
		const struct block *b = h->pieces.items[i].value;

		if (h->last)
			look_between(h, h->last, b);
		h->last = b;
	}
	return 0;
}

/* Where slices end that have about as many blocks each; how many there are. 0 or negative errno. */
static int divide(struct holes *h, const struct feed *feed, uint64_t *ends, unsigned *count)
{
	int rc = feed->each_live(feed->self, sample, h);
	size_t n = h->pieces.count, parts = h->seen / SLICE_LEAST + 1;

	if (rc)
		return rc;
	*count = parts < SLICES ? (unsigned)parts : SLICES;
	sort_items(h->pieces.items, n);
	for (unsigned i = 1; i < *count; i++)
		ends[i - 1] = h->pieces.items[n * i / *count].key;
	ends[*count - 1] = UINT64_MAX;
	return 0;
}

static int find_holes(struct holes *h, const struct feed *feed)
{
	uint64_t ends[SLICES];
	unsigned count = 0;
	int rc = divide(h, feed, ends, &count);

	for (unsigned i = 0; i < count && !rc; i++) {
		if (i && ends[i] == ends[i - 1])
			continue;
		h->from = i ? ends[i - 1] + 1 : 0;
		h->until = ends[i];
		rc = read_slice(h, feed);
	}
	vec_free(&h->pieces);
	return rc;
}

static uint32_t most_of(const uint64_t *bytes, uint32_t count, uint64_t least)
{
	uint32_t most = CALLSITE_NONE;

	for (uint32_t i = 0; i < count; i++)
		if (bytes[i] > least) {
			least = bytes[i];
			most = i;
		}
	return most;
}

/* The place whose arenas have most free. */
static uint32_t emptiest(const struct callsites *callsites)
{
	uint32_t most = CALLSITE_NONE;

	for (uint32_t i = 0; i < callsites->count; i++)
		if (callsite_unused(&callsites->list[i]) >
		    (most == CALLSITE_NONE ? 0 : callsite_unused(&callsites->list[most])))
			most = i;
	return most;
}

int host_slack_read(const struct feed *feed, const struct model *m,
    const struct callsites *callsites, const struct ledger *ledger, struct scene_slack *out)
{
	uint64_t *of_callsite = calloc(callsites->count + 1u, sizeof(*of_callsite));
	struct holes holes = {.callsites = callsites, .out = out};
	struct malloc_held held;
	int rc = -ENOMEM;

	*out = (struct scene_slack){.pinned_by = CALLSITE_NONE};
	if (!of_callsite || !feed->each_live)
		goto out;
	holes.beside = of_callsite;
	rc = 0;
	out->reserved = ledger_get(ledger, LEDGER_KEPT);
	out->arenas = ledger_get(ledger, LEDGER_ARENAS_FREE);
	/* Of an allocator that tells only the whole, it is all that is in no block; of one that was
	 * not asked nothing is known. */
	malloc_held(m, callsites, 0, &held);
	if (held.known && !held.split)
		out->bytes = ledger_get(ledger, LEDGER_UNSPLIT);
	out->arenas_steady = out->arenas ? arenas_steady(m, callsites->moment_ns) : 0;
	out->bytes += ledger_get(ledger, LEDGER_FREE_LISTS) + out->reserved + out->arenas;
	out->known = out->bytes > 0;
	out->below = ledger_get(ledger, "free");
	out->below -= out->below < BELOW_MIN ? out->below : BELOW_MIN;
	if (!out->known)
		goto out;
	/* Between the blocks of a sample lie those that are not in it. */
	if (feed->facts(feed->self)->mode != TRACE_MODE_SAMPLED)
		rc = find_holes(&holes, feed);
	if (rc)
		goto out;
	if (out->largest > out->bytes - out->reserved - out->arenas)
		out->largest = out->bytes - out->reserved - out->arenas;
	if (out->arenas > out->bytes / 2) {
		out->pinned_by = emptiest(callsites);
		goto out;
	}
	/* Of the holes, those that are known to lie there must be a good part. */
	out->pinned_by = most_of(of_callsite, callsites->count, out->bytes / 8);
	if (out->pinned_by == CALLSITE_NONE) {
		for (uint32_t i = 0; i < callsites->count; i++) {
			const struct callsite *p = &callsites->list[i];

			of_callsite[i] =
			    p->facts.total_bytes > p->facts.live_bytes &&
				    p->facts.total_bytes / OWN_MAPPING < p->facts.total_count
				? p->facts.total_bytes - p->facts.live_bytes
				: 0;
		}
		out->pinned_by = most_of(of_callsite, callsites->count, 0);
	}
out:
	free(of_callsite);
	return rc;
}

uint64_t host_slack_at(const struct model *m, uint64_t time_ns)
{
	const struct allocator_reading *a = allocator_stats_at(&m->measured.malloc, time_ns);

	return (!a	      ? 0
		   : a->split ? a->free
			      : allocator_stats_beside(a)) +
	       arenas_free_at(m, time_ns);
}
