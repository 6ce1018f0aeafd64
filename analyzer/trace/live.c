#include "trace/live.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 4096u
/* Slots, 2 MiB. Larger tables save memory; smaller ones keep searches short. */
#define DENSE_SLOTS (1u << 18)
#define SLOT_DEAD 0x80000000u /* in .slot: removed from the table */

double block_weight(const struct block *b)
{
	return b->mean > 0 && b->size ? -1 / expm1(-(double)b->size / (double)b->mean) : 1;
}

uint64_t block_bytes_sampled(const struct block *b)
{
	return (uint64_t)((double)b->size * block_weight(b) + 0.5);
}

/* Round up as often as the fraction demands, by a hash of the block's constant serial. */
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
	*live = (struct live){.mask = FIRST_SLOTS - 1, .limit = FIRST_SLOTS / 2};
	live->slots = calloc(FIRST_SLOTS, sizeof(*live->slots));
	return live->slots ? 0 : -ENOMEM;
}

void live_fini(struct live *live)
{
	for (size_t i = 0; i < live->pools.count; i++)
		free(live->pools.items[i]);
	vec_free(&live->pools);
	free(live->slots);
	*live = (struct live){0};
}

void live_clear(struct live *live, bool keep)
{
	if (!live->used)
		return; /* nothing lived since */
	while (!keep && live->pools.count > 1)
		free(live->pools.items[--live->pools.count]);
	memset(live->slots, 0, (live->mask + 1) * sizeof(*live->slots));
	live->count = 0;
	live->used = 0;
	live->spare = 0;
	live->bytes = 0;
}

/* Return the distance of the slot from the tag's home. */
static inline size_t behind(size_t i, uint32_t tag, size_t mask)
{
	return (i - tag) & mask;
}

/* Find the slot of the address, or the one where it belongs. */
static inline __attribute__((always_inline)) size_t slot_of(
    const struct live *live, uint64_t address, uint32_t tag, bool *found)
{
	const struct live_slot *slots = live->slots;
	size_t mask = live->mask, i = tag & mask;

	*found = false;
	for (; slots[i].index; i = (i + 1) & mask) {
		*found =
		    slots[i].tag == tag && live_block(live, slots[i].index - 1)->address == address;
		if (*found || behind(i, slots[i].tag, mask) < behind(i, tag, mask))
			break;
	}
	return i;
}

/* Insert, and move the entries up to the next free slot on by one. */
static inline void put_slot(struct live_slot *slots, size_t mask, size_t i, struct live_slot put)
{
	while (slots[i].index) {
		struct live_slot was = slots[i];

		slots[i] = put;
		put = was;
		i = (i + 1) & mask;
	}
	slots[i] = put;
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
		uint32_t tag = live->slots[i].tag;
		size_t at = tag & mask;

		if (!live->slots[i].index)
			continue;
		while (slots[at].index && behind(at, slots[at].tag, mask) >= behind(at, tag, mask))
			at = (at + 1) & mask;
		put_slot(slots, mask, at, live->slots[i]);
	}
	free(live->slots);
	live->slots = slots;
	live->mask = mask;
	live->limit = mask < DENSE_SLOTS ? (mask + 1) / 2 : (mask + 1) / 6 * 5;
	return 0;
}

/* Take a spare block, or the next of the last pool; *index is its number. */
static struct block *new_block(struct live *live, uint32_t *index)
{
	struct block *b;

	if (live->spare) {
		*index = live->spare - 1;
		b = live_block(live, *index);
		live->spare = (uint32_t)b->size;
		return b;
	}
	if (live->used == SLOT_DEAD)
		return NULL;
	if (live->used >> LIVE_POOL_SHIFT == live->pools.count) {
		b = malloc(LIVE_POOL_BLOCKS * sizeof(*b));
		if (!b || vec_push(&live->pools, b)) {
			free(b);
			return NULL;
		}
	}
	*index = live->used++;
	return live_block(live, *index);
}

struct block *live_find_or_add(struct live *live, uint64_t address, uint64_t size, bool *lived)
{
	uint32_t tag = (uint32_t)map_hash(address), index;
	struct block *b;
	size_t i;

	if (live->count >= live->limit && grow(live))
		return NULL;
	i = slot_of(live, address, tag, lived);
	if (*lived)
		return live_block(live, live->slots[i].index - 1);
	b = new_block(live, &index);
	if (!b)
		return NULL;
	*b = (struct block){.address = address, .size = size, .slot = index};
	put_slot(live->slots, live->mask, i, (struct live_slot){.tag = tag, .index = index + 1});
	live->count++;
	live->bytes += size;
	return b;
}

struct block *live_take(struct live *live, uint64_t address)
{
	bool lived;
	size_t i = slot_of(live, address, (uint32_t)map_hash(address), &lived), next;
	struct block *b;

	if (!lived)
		return NULL;
	b = live_block(live, live->slots[i].index - 1);
	live->bytes -= b->size;
	live->count--;
	/* Close the gap, so that searches need no tombstones. */
	for (next = (i + 1) & live->mask; live->slots[next].index; next = (next + 1) & live->mask) {
		if (!behind(next, live->slots[next].tag, live->mask))
			break;
		live->slots[i] = live->slots[next];
		i = next;
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
