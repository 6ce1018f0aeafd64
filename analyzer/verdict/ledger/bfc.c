#include "verdict/ledger/bfc.h"

#include <errno.h>
#include <string.h>

#include "util/map.h"
#include "util/num.h"
#include "util/text/str.h"
#include "util/tuned.h"

TUNED(uint64_t, LEAST_BYTES, 4096, "below it, many blocks have such a size by chance");
TUNED(size_t, INWARD, 5,
    "frames from the arena's own to malloc, in either call: unnamed wrappers are counted as well");

#define CHUNK_BYTES 256u /* an arena's sizes are multiples of it */
#define HANDLE_BYTES 8u
#define LATELY 16u /* blocks of all threads that look_back() checks */

struct reading {
	const struct feed *feed;
	struct bfc *out;
	struct map live; /* by address: number of the region, from 1 */
	uint64_t count; /* regions allocated and freed */
	struct lately {
		struct bfc_region region; /* size 0: none, or already with its table */
		uint32_t thread;
	} lately[LATELY];
	unsigned next;
};

/* True if one function made both calls. They differ in callee and line. */
static bool of_one_call(const struct feed *feed, struct bfc_region *r, uint32_t table)
{
	const struct symbol *x, *y;
	size_t n = feed->symbols(feed->self, r->stack, &x),
	       m = feed->symbols(feed->self, table, &y), k = 0;

	while (k < n && k < m && str_same(x[k].function, y[k].function))
		k++;
	if (!k || k == n || k == m || n - k > INWARD || m - k > INWARD)
		return false;
	r->by = x[k].function;
	r->table_by = y[k].function;
	return true;
}

static int add(struct reading *s, struct bfc_region *r)
{
	uint64_t *live = map_put(&s->live, r->address);

	if (!live)
		return -ENOMEM;
	*live = s->out->regions.count + 1;
	r->taken = ++s->count;
	return vec_push(&s->out->regions, *r);
}

/* Add the region of this table, if the thread allocated it just before. */
static int look_back(struct reading *s, const struct event *e)
{
	for (unsigned i = 1; i <= LATELY; i++) {
		struct lately *l = &s->lately[(s->next + LATELY - i) % LATELY];
		struct bfc_region *r = &l->region;
		uint64_t chunks = r->size / CHUNK_BYTES + (r->size % CHUNK_BYTES != 0);

		if (r->size < LEAST_BYTES || l->thread != e->thread ||
		    e->block->size != chunks * HANDLE_BYTES ||
		    !of_one_call(s->feed, r, e->block->stack))
			continue;
		struct bfc_region found = *r;

		r->size = 0;
		return add(s, &found);
	}
	return 0;
}

static int take(struct reading *s, const struct event *e)
{
	const struct block *b = e->block;
	int rc = look_back(s, e);

	s->lately[s->next] =
	    (struct lately){{.address = b->address, .size = b->size, .stack = b->stack}, e->thread};
	s->next = (s->next + 1) % LATELY;
	return rc;
}

static void give_back(struct reading *s, uint64_t address)
{
	uint64_t *live = map_find(&s->live, address);

	for (unsigned i = 0; i < LATELY; i++)
		if (s->lately[i].region.address == address)
			s->lately[i].region.size = 0;
	if (!live)
		return;
	s->out->regions.items[*live - 1].freed = ++s->count;
	map_remove(&s->live, address);
}

static bool of_pair(const struct bfc_region *r, const struct bfc_region *as)
{
	return str_same(r->by, as->by) && str_same(r->table_by, as->table_by);
}

/* Keep the pair of calls with the most bytes, since an arena makes both from one place. */
static void keep_one_pair(struct bfc *b)
{
	enum { PAIRS = 64 };
	struct {
		struct bfc_region as;
		uint64_t bytes;
	} pairs[PAIRS], *best = pairs;
	size_t count = 0, kept = 0;

	for (size_t i = 0; i < b->regions.count; i++) {
		const struct bfc_region *r = &b->regions.items[i];
		size_t k = 0;

		while (k < count && !of_pair(r, &pairs[k].as))
			k++;
		if (k == PAIRS)
			continue;
		if (k == count) {
			pairs[count].as = *r;
			pairs[count++].bytes = 0;
		}
		pairs[k].bytes += r->size;
		if (pairs[k].bytes > best->bytes)
			best = &pairs[k];
	}
	for (size_t i = 0; count && i < b->regions.count; i++)
		if (of_pair(&b->regions.items[i], &best->as))
			b->regions.items[kept++] = b->regions.items[i];
	b->regions.count = kept;
}

static bool is_power(uint64_t size)
{
	return !(size & (size - 1));
}

static void sum_up(struct bfc *b)
{
	uint64_t held = 0, largest = 0, first_freed = UINT64_MAX;
	bool doubling = true;

	for (size_t i = 0; i < b->regions.count; i++) {
		const struct bfc_region *r = &b->regions.items[i];

		if (r->freed && r->freed < first_freed)
			first_freed = r->freed;
		b->several |= r->taken > first_freed;
		/* The last region takes the rest of a limit, rarely a power of two. */
		doubling &= is_power(r->size);
		b->several |= doubling && r->size < largest;
		largest = num_most(largest, r->size);
		held += r->size;
	}
	/* If nothing is allocated after the first release, the peak is the sum. */
	b->most = held;
}

int bfc_read(const struct feed *feed, struct bfc *out, struct err *err)
{
	struct reading s = {.feed = feed, .out = out};
	struct event e;
	int rc;

	memset(out, 0, sizeof(*out));
	rc = feed->rewind(feed->self, err);
	while (!rc && (rc = feed->next(feed->self, &e, err)) == 1) {
		rc = 0;
		if (!e.block || e.space != TRACE_SPACE_HOST)
			continue;
		if (e.kind == EV_FREE)
			give_back(&s, e.block->address);
		else if (e.kind == EV_ALLOC)
			rc = take(&s, &e);
		if (rc)
			err_set(err, rc, "no memory for the regions of an arena");
	}
	map_free(&s.live);
	if (rc)
		return rc;
	keep_one_pair(out);
	sum_up(out);
	return 0;
}

void bfc_fini(struct bfc *bfc)
{
	vec_free(&bfc->regions);
}
