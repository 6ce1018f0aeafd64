/*
 * host_slack.c - see host_slack.h. Malloc's statistics show how much is free; the live blocks show
 * where: between two neighbours in one stretch of its memory.
 *
 * The interpreter counts all arenas together, so each call site has the same share of their free
 * bytes. Later arenas were full: otherwise they would not have been needed.
 */
#include "verdict/ledger/host_slack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/num.h"
#include "util/sort.h"
#include "util/tuned.h"
#include "util/vec.h"
#include "verdict/ledger/malloc_held.h"

TUNED(uint64_t, HOLE_MIN, 128, "headers and rounding between two neighbours are less");
TUNED(uint64_t, BELOW_MIN, 1u << 20,
    "malloc asks the kernel for more than the block: whole pages, a pad at its heap's top");
TUNED(uint64_t, ARENAS_PART, 2, "the larger half of the free bytes says who pins them");
TUNED(uint64_t, PINNED_PART, 8,
    "holes beside the blocks of a call site pin a good part of what is free, not some of it");
TUNED(uint64_t, STEADY_PART, 2,
    "what was in use when there were half as many arenas is not what made them grow");

/* glibc's heaps of a thread start at multiples of 64 MiB, and other stretches of malloc's memory
 * are smaller: two blocks of different stretches have no hole between them. */
#define STRETCH_SHIFT 26u
/* glibc's M_MMAP_THRESHOLD: a larger block may have its own mapping. */
#define OWN_MAPPING (128u << 10)

/* Blocks are sorted one slice of the address space at a time: all at once would take a quarter of
 * the blocks' own memory. A sample of the blocks sets the slices' borders. */
#define SLICES 8u
#define SLICE_LEAST 32768u /* blocks: fewer are not divided */
#define SAMPLE_EVERY 64u

bool arenas_by_interpreter(const struct feed *feed, const char *interpreter, uint32_t stack)
{
	const struct symbol *symbols;
	bool by_interpreter = false;
	size_t count = interpreter && stack ? feed->symbols(feed->self, stack, &symbols) : 0;

	for (size_t i = count; i-- > 0;) {
		const char *module = symbols[i].module;

		if (symbols[i].python)
			return true;
		if (!module)
			continue;
		if (strcmp(module, interpreter) == 0 || strstr(module, "libpython"))
			by_interpreter = true;
		else if (!strstr(module, "libc."))
			return by_interpreter;
	}
	return false;
}

void arenas_mark(const struct model *m, struct callsites *callsites)
{
	uint64_t until =
	    callsites->moment_ns + (callsites->moment == AT_FAILURE ? MALLOC_SAME_FAILURE_NS : 0);
	const struct allocator_reading *a = allocator_stats_at(&m->measured.arenas, until);
	const char *interpreter = feed_interpreter(&m->feed);
	uint64_t bytes = 0;
	double unused = 0;

	for (uint32_t i = 0; i < callsites->count; i++) {
		struct callsite *p = &callsites->list[i];

		p->arena_share.any =
		    p->facts.map_bytes && arenas_by_interpreter(&m->feed, interpreter, p->stack);
		bytes += p->arena_share.any ? p->facts.map_bytes : 0;
	}
	if (a && a->arena)
		unused = (double)a->free / (double)(bytes > a->arena ? bytes : a->arena);
	for (uint32_t i = 0; i < callsites->count; i++)
		callsites->list[i].arena_share.unused =
		    callsites->list[i].arena_share.any ? unused : 0;
}

/* Return the free bytes in the arenas at that moment; 0: unknown. */
static uint64_t arenas_free_at(const struct model *m, uint64_t time_ns)
{
	const struct allocator_reading *a = allocator_stats_at(&m->measured.arenas, time_ns);

	return a ? a->free : 0;
}

/* Return the used bytes at that moment that were already used when there were half as many arenas:
 * they are no growth. */
static uint64_t arenas_steady(const struct model *m, uint64_t time_ns)
{
	const struct allocator_reading *now = allocator_stats_at(&m->measured.arenas, time_ns);
	uint64_t before = 0;

	if (!now)
		return 0;
	for (const struct allocator_reading *a = m->measured.arenas.at; a < now; a++)
		if (a->arena <= now->arena / STEADY_PART && a->arena - a->free > before)
			before = a->arena - a->free;
	return num_least(before, now->arena - now->free);
}

struct holes {
	const struct callsites *callsites;
	uint64_t *beside; /* bytes of holes beside each call site's blocks */
	struct scene_slack *out;
	VEC(struct sort_item) pieces; /* the slice's blocks */
	uint64_t from, until; /* the slice's addresses, including the last */
	uint64_t seen; /* blocks, while sampling */
	const struct block *last; /* last block of the previous slices; NULL: none */
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

void slack_hole(
    struct scene_slack *slack, uint64_t *beside, uint64_t size, uint32_t before, uint32_t after)
{
	slack->holes++;
	slack->largest = num_most(slack->largest, size);
	if (before != CALLSITE_NONE)
		beside[before] += size;
	if (after != CALLSITE_NONE && after != before)
		beside[after] += size;
}

static void look_between(struct holes *h, const struct block *a, const struct block *b)
{
	uint64_t end = a->address + a->size;
	uint64_t size = num_less(b->address, end);

	if (size >= HOLE_MIN && end >> STRETCH_SHIFT == b->address >> STRETCH_SHIFT)
		slack_hole(h->out, h->beside, size,
		    callsites_of_stack(h->callsites, STACK_STATS_HEAP, a->stack),
		    callsites_of_stack(h->callsites, STACK_STATS_HEAP, b->stack));
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

/* Divide the address space into slices of about as many blocks each. 0 or negative errno. */
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

uint32_t slack_most(const uint64_t *bytes, uint32_t count, uint64_t least)
{
	uint32_t most = CALLSITE_NONE;

	for (uint32_t i = 0; i < count; i++)
		if (bytes[i] > least) {
			least = bytes[i];
			most = i;
		}
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
	/* An allocator that counts only its total has everything free that is in no block; without
	 * statistics, the amount is unknown. */
	malloc_held(m, callsites, 0, &held);
	if (held.known && !held.split)
		out->bytes = ledger_get(ledger, LEDGER_UNSPLIT);
	out->arenas_steady = out->arenas ? arenas_steady(m, callsites->moment_ns) : 0;
	out->bytes += ledger_get(ledger, LEDGER_FREE_LISTS) + out->reserved + out->arenas;
	out->known = out->bytes > 0;
	out->below = ledger_get(ledger, LEDGER_FREE);
	out->below -= num_least(out->below, BELOW_MIN);
	if (!out->known)
		goto out;
	/* Between the blocks of a sample lie others that are not recorded. */
	if (feed->facts(feed->self)->mode != TRACE_MODE_SAMPLED)
		rc = find_holes(&holes, feed);
	if (rc)
		goto out;
	out->largest = num_least(out->largest, out->bytes - out->reserved - out->arenas);
	if (out->arenas > out->bytes / ARENAS_PART) {
		for (uint32_t i = 0; i < callsites->count; i++)
			of_callsite[i] = callsite_unused(&callsites->list[i]);
		out->pinned_by = slack_most(of_callsite, callsites->count, 0);
		goto out;
	}
	out->pinned_by = slack_most(of_callsite, callsites->count, out->bytes / PINNED_PART);
	if (out->pinned_by == CALLSITE_NONE) {
		for (uint32_t i = 0; i < callsites->count; i++) {
			const struct callsite *p = &callsites->list[i];

			of_callsite[i] =
			    p->facts.total_bytes > p->facts.live_bytes &&
				    p->facts.total_bytes / OWN_MAPPING < p->facts.total_count
				? p->facts.total_bytes - p->facts.live_bytes
				: 0;
		}
		out->pinned_by = slack_most(of_callsite, callsites->count, 0);
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
