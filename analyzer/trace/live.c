#include "trace/live.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/vec.h"

#define FIRST_SLOTS 4096u
#define SLOT_DEAD 0x80000000u /* in .slot: taken out of the table */

double block_weight(const struct block *b)
{
	return b->mean > 0 && b->size ? -1 / expm1(-(double)b->size / (double)b->mean) : 1;
}

uint64_t block_bytes_sampled(const struct block *b)
{
	return (uint64_t)((double)b->size * block_weight(b) + 0.5);
}

/* Rounded up as often as its fraction says, by what does not change of it. */
uint64_t block_count_sampled(const struct block *b)
{
	double chance = (double)(b->serial * 0x9e3779b97f4a7c15ull >> 11) * 0x1p-53;

	return (uint64_t)(block_weight(b) + chance);
}

double block_variance(const struct block *b)
{
	double weight = block_weight(b), size = (double)b->size;

	return size * size * weight * (weight - 1);
}

int live_init(struct live *live)
{
	map_seed();
	*live = (struct live){.mask = FIRST_SLOTS - 1};
	live->slots = calloc(FIRST_SLOTS, sizeof(*live->slots));
	return live->slots ? 0 : -ENOMEM;
}

void live_fini(struct live *live)
{
	for (size_t i = 0; i < live->pool_count; i++)
		free(live->pools[i]);
	free(live->pools);
	free(live->slots);
	*live = (struct live){0};
}

void live_clear(struct live *live, bool keep)
{
	if (!live->used)
		return; /* nothing lived since */
	while (!keep && live->pool_count > 1)
		free(live->pools[--live->pool_count]);
	memset(live->slots, 0, (live->mask + 1) * sizeof(*live->slots));
	live->count = 0;
	live->used = 0;
	live->spare = 0;
	live->bytes = 0;
}

/* The slot of the address, or the free one that ends the search. */
static size_t slot_of(const struct live *live, uint64_t address, uint32_t tag)
{
	size_t i = tag & live->mask;

	while (live->slots[i].index &&
	       (live->slots[i].tag != tag ||
		   live_block(live, live->slots[i].index - 1)->address != address))
		i = (i + 1) & live->mask;
	return i;
}

static int grow(struct live *live)
{
	size_t mask = live->mask * 2 + 1;
	struct live_slot *slots;

	if (mask > UINT32_MAX)
		return -ENOMEM;
	slots = calloc(mask + 1, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i <= live->mask; i++) {
		if (!live->slots[i].index)
			continue;
		size_t at = live->slots[i].tag & mask;
		while (slots[at].index)
			at = (at + 1) & mask;
		slots[at] = live->slots[i];
	}
	free(live->slots);
	live->slots = slots;
	live->mask = mask;
	return 0;
}

/* A block from the spare ones, or the next of the last pool; *index is its number. */
static struct block *new_block(struct live *live, uint32_t *index)
{
	struct block *b, **grown;

	if (live->spare) {
		*index = live->spare - 1;
		b = live_block(live, *index);
		live->spare = (uint32_t)b->size;
		return b;
	}
	if (live->used == SLOT_DEAD)
		return NULL;
	if (live->used >> LIVE_POOL_SHIFT == live->pool_count) {
		if (live->pool_count == live->pool_capacity) {
			size_t cap = live->pool_capacity ? live->pool_capacity * 2 : 64;
			grown = realloc(live->pools, cap * sizeof(*grown));
			if (!grown)
				return NULL;
			live->pools = grown;
			live->pool_capacity = cap;
		}
		b = malloc(LIVE_POOL_BLOCKS * sizeof(*b));
		if (!b)
			return NULL;
		live->pools[live->pool_count++] = b;
	}
	*index = live->used++;
	return live_block(live, *index);
}

struct block *live_find_or_add(struct live *live, uint64_t address, uint64_t size, bool *lived)
{
	uint32_t tag = (uint32_t)map_hash(address), index;
	struct block *b;
	size_t i;

	/* Half full at most: searches for what is not there, one for each acquisition, stay short.
	 */
	if (live->count >= (live->mask + 1) / 2 && grow(live))
		return NULL;
	i = slot_of(live, address, tag);
	*lived = live->slots[i].index;
	if (*lived)
		return live_block(live, live->slots[i].index - 1);
	b = new_block(live, &index);
	if (!b)
		return NULL;
	*b = (struct block){.address = address, .size = size, .slot = index};
	live->slots[i] = (struct live_slot){.tag = tag, .index = index + 1};
	live->count++;
	live->bytes += size;
	return b;
}

struct block *live_take(struct live *live, uint64_t address)
{
	size_t i = slot_of(live, address, (uint32_t)map_hash(address)), next;
	uint32_t index = live->slots[i].index;
	struct block *b;

	if (!index)
		return NULL;
	b = live_block(live, index - 1);
	live->bytes -= b->size;
	live->count--;
	/* Close the gap, so that searches need no marks of what was here. */
	for (next = (i + 1) & live->mask; live->slots[next].index; next = (next + 1) & live->mask) {
		size_t home = live->slots[next].tag & live->mask;
		if (((next - home) & live->mask) >= ((next - i) & live->mask)) {
			live->slots[i] = live->slots[next];
			i = next;
		}
	}
	live->slots[i] = (struct live_slot){0};
	b->slot |= SLOT_DEAD;
	return b;
}

void live_recycle(struct live *live, struct block *block)
{
	uint32_t index = block->slot & ~SLOT_DEAD;

	block->size = live->spare;
	live->spare = index + 1;
}

int live_each(const struct live *live, int (*fn)(void *arg, const struct block *b), void *arg)
{
	int r = 0;

	for (uint32_t i = 0; i < live->used && !r; i++) {
		const struct block *b = live_block(live, i);
		if (!(b->slot & SLOT_DEAD))
			r = fn(arg, b);
	}
	return r;
}
