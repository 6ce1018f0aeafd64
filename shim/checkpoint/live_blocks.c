/*
 * live_blocks.c - the table behind live_blocks.h's filter. An address lies in one of the two
 * buckets that its hash names, each a cache line. A full table is followed by one twice as large;
 * what lies in the old one stays there, and look-ups go through all of them: the filter keeps most
 * from coming here. Behind the addresses of a table lies, place by place, how each was acquired:
 * what a checkpoint writes of it.
 */
#include "checkpoint/live_blocks.h"

#include "base/clock.h"
#include "base/shim_state.h"
#include "base/sys.h"
#include "checkpoint/freed_stats.h"
#include "sampling/sampler.h"

#define BUCKET 8u /* addresses */
#define FIRST_BUCKETS 512u

#define BUSY 1u /* no block's address: somebody is reading or writing what belongs to the place */

struct table {
	struct table *older;
	struct live_block *how; /* of each place */
	uint64_t mask; /* of buckets */
	uint64_t to_line[5]; /* buckets are cache lines */
	uint64_t slots[];
};

uint8_t live_blocks_filter[LIVE_BLOCKS_FILTER_SLOTS] __attribute__((aligned(64)));

static struct table *newest;
static bool growing;
static uint64_t first_own; /* ticks: blocks of before were inherited through a fork */
static struct live_blocks_totals totals;

static void add_to(uint64_t *sum, uint64_t n)
{
	__atomic_fetch_add(sum, n, __ATOMIC_RELAXED);
}

static void raise_most(uint64_t bytes)
{
	uint64_t most = __atomic_load_n(&totals.most_bytes, __ATOMIC_RELAXED);

	while (bytes > most && bytes < UINT64_MAX / 2 &&
	       !__atomic_compare_exchange_n(
		   &totals.most_bytes, &most, bytes, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void count_in(const struct live_block *how)
{
	uint64_t bytes = sampler_stands_for(how->size, how->mean);

	add_to(&totals.acquired, 1);
	add_to(&totals.acquired_bytes, bytes);
	add_to(&totals.live, 1);
	add_to(&totals.live_sampled, how->mean != 0);
	raise_most(__atomic_add_fetch(&totals.live_bytes, bytes, __ATOMIC_RELAXED));
}

/* It lives no more, or is known no more. */
static void count_less(const struct live_block *how)
{
	add_to(&totals.live, -1ull);
	add_to(&totals.live_sampled, -(uint64_t)(how->mean != 0));
	add_to(&totals.live_bytes, -sampler_stands_for(how->size, how->mean));
}

static void count_out(const struct live_block *how)
{
	if (how->birth < first_own)
		return;
	freed_stats_note(how);
	add_to(&totals.released, 1);
	add_to(&totals.released_bytes, sampler_stands_for(how->size, how->mean));
	count_less(how);
}

static uint64_t *bucket_of(struct table *t, uint64_t address, unsigned which)
{
	uint64_t h = address * 0x9e3779b97f4a7c15ull;

	return &t->slots[((which ? h >> 20 : h >> 40) & t->mask) * BUCKET];
}

static void filter_raise(uint8_t *place)
{
	uint8_t was = __atomic_load_n(place, __ATOMIC_RELAXED);

	while (was != UINT8_MAX && !__atomic_compare_exchange_n(place, &was, (uint8_t)(was + 1),
				       true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void filter_lower(uint8_t *place)
{
	uint8_t was = __atomic_load_n(place, __ATOMIC_RELAXED);

	while (was != UINT8_MAX && was &&
	       !__atomic_compare_exchange_n(
		   place, &was, (uint8_t)(was - 1), true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static struct live_block *how_of(struct table *t, const uint64_t *slot)
{
	return &t->how[slot - t->slots];
}

/* The place is the caller's from here until it stores another word there. */
static bool seize(uint64_t *slot, uint64_t word)
{
	return __atomic_load_n(slot, __ATOMIC_RELAXED) == word &&
	       __atomic_compare_exchange_n(
		   slot, &word, BUSY, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void fill(struct table *t, uint64_t *slot, uint64_t address, const struct live_block *how)
{
	*how_of(t, slot) = *how;
	__atomic_store_n(slot, address, __ATOMIC_RELEASE);
}

/* The caller's, if the address is there; NULL. */
static uint64_t *find(struct table *t, uint64_t address)
{
	for (unsigned which = 0; which < 2; which++) {
		uint64_t *slot = bucket_of(t, address, which);

		for (unsigned i = 0; i < BUCKET; i++)
			if (seize(&slot[i], address))
				return &slot[i];
	}
	return NULL;
}

/* False: both buckets are full. */
static bool store(struct table *t, uint64_t address, const struct live_block *how)
{
	for (unsigned which = 0; which < 2; which++) {
		uint64_t *slot = bucket_of(t, address, which);

		for (unsigned i = 0; i < BUCKET; i++)
			if (seize(&slot[i], 0)) {
				fill(t, &slot[i], address, how);
				return true;
			}
	}
	return false;
}

static size_t table_bytes(uint64_t buckets)
{
	return sizeof(struct table) +
	       buckets * BUCKET * (sizeof(uint64_t) + sizeof(struct live_block));
}

/* A larger table in front, by this thread or another. False: no memory, or who is at it does not
 * come to it, and may be the very one that is interrupted here. */
static bool grow(struct table *full)
{
	uint64_t buckets = full ? (full->mask + 1) * 2 : FIRST_BUCKETS, until = 0;
	struct table *t;

	if (shim.sandboxed)
		return false;
	while (__atomic_exchange_n(&growing, true, __ATOMIC_ACQUIRE)) {
		if (__atomic_load_n(&newest, __ATOMIC_ACQUIRE) != full)
			return true;
		if (!until)
			until = clock_ticks() + tick_clock.ticks_100ms / 10;
		else if (clock_ticks() > until)
			return false;
		sys_yield();
	}
	t = __atomic_load_n(&newest, __ATOMIC_ACQUIRE);
	if (t == full) {
		t = sys_pages(table_bytes(buckets));
		if (t) {
			t->how = (struct live_block *)(void *)(t->slots + buckets * BUCKET);
			t->older = full;
			t->mask = buckets - 1;
			__atomic_store_n(&newest, t, __ATOMIC_RELEASE);
		}
	}
	__atomic_store_n(&growing, false, __ATOMIC_RELEASE);
	return t != NULL;
}

bool live_blocks_add(const void *block, const struct live_block *how)
{
	struct table *first;
	uint8_t *place = live_blocks_slot(block);
	bool stored = false;

	live_blocks_take(block, NULL);
	/* before the address can be found, so that nobody finds it and sees the place empty */
	filter_raise(place);
	first = __atomic_load_n(&newest, __ATOMIC_ACQUIRE);
	do {
		for (struct table *t = first; t && !stored; t = t->older)
			stored = store(t, (uintptr_t)block, how);
	} while (
	    !stored && grow(first) && (first = __atomic_load_n(&newest, __ATOMIC_ACQUIRE)) != NULL);
	if (stored)
		count_in(how);
	else
		filter_lower(place);
	return stored;
}

void live_blocks_prepare(void)
{
	struct table *first = __atomic_load_n(&newest, __ATOMIC_ACQUIRE);
	uint64_t places = 0;

	for (struct table *t = first; t; t = t->older)
		places += (t->mask + 1) * BUCKET;
	if (__atomic_load_n(&totals.live, __ATOMIC_RELAXED) > places / 4 * 3)
		grow(first);
}

bool live_blocks_take(const void *block, struct live_block *how)
{
	uint64_t address = (uintptr_t)block, *slot = NULL;
	struct live_block was;
	struct table *t;

	if (!live_blocks_maybe(block))
		return false;
	for (t = __atomic_load_n(&newest, __ATOMIC_ACQUIRE); t; t = t->older)
		if ((slot = find(t, address)))
			break;
	if (!slot)
		return false;
	was = *how_of(t, slot);
	__atomic_store_n(slot, 0, __ATOMIC_RELEASE);
	filter_lower(live_blocks_slot(block));
	count_out(&was);
	if (how)
		*how = was;
	return true;
}

struct live_blocks_totals live_blocks_period(bool mark)
{
	struct live_blocks_totals now;

	now.acquired = __atomic_load_n(&totals.acquired, __ATOMIC_RELAXED);
	now.acquired_bytes = __atomic_load_n(&totals.acquired_bytes, __ATOMIC_RELAXED);
	now.released = __atomic_load_n(&totals.released, __ATOMIC_RELAXED);
	now.released_bytes = __atomic_load_n(&totals.released_bytes, __ATOMIC_RELAXED);
	now.live = __atomic_load_n(&totals.live, __ATOMIC_RELAXED);
	now.live_bytes = __atomic_load_n(&totals.live_bytes, __ATOMIC_RELAXED);
	now.live_sampled = __atomic_load_n(&totals.live_sampled, __ATOMIC_RELAXED);
	now.most_bytes =
	    mark ? __atomic_exchange_n(&totals.most_bytes, now.live_bytes, __ATOMIC_RELAXED)
		 : __atomic_load_n(&totals.most_bytes, __ATOMIC_RELAXED);
	return now;
}

void live_blocks_period_commit(const struct live_blocks_totals *marked)
{
	add_to(&totals.acquired, -marked->acquired);
	add_to(&totals.acquired_bytes, -marked->acquired_bytes);
	add_to(&totals.released, -marked->released);
	add_to(&totals.released_bytes, -marked->released_bytes);
}

void live_blocks_period_abort(const struct live_blocks_totals *marked)
{
	raise_most(marked->most_bytes);
}

/* What a place holds, unless it changes all the time; 0: nothing. */
static uint64_t look(struct table *t, uint64_t i, struct live_block *how)
{
	for (int tries = 0; tries < 64; tries++) {
		uint64_t address = __atomic_load_n(&t->slots[i], __ATOMIC_ACQUIRE);

		if (!address)
			return 0;
		if (address != BUSY) {
			*how = t->how[i];
			__atomic_thread_fence(__ATOMIC_ACQUIRE);
			if (__atomic_load_n(&t->slots[i], __ATOMIC_RELAXED) == address &&
			    __atomic_load_n(&t->how[i].birth, __ATOMIC_RELAXED) == how->birth)
				return address;
		}
		if (tries >= 32)
			sys_yield();
	}
	return 0;
}

bool live_blocks_each(uint64_t until,
    bool (*each)(void *arg, uint64_t address, const struct live_block *how), void *arg)
{
	struct live_block how;

	for (struct table *t = __atomic_load_n(&newest, __ATOMIC_ACQUIRE); t; t = t->older)
		for (uint64_t i = 0; i < (t->mask + 1) * BUCKET; i++) {
			uint64_t address = look(t, i, &how);

			if (address && how.birth >= first_own && how.birth <= until &&
			    !each(arg, address, &how))
				return false;
		}
	return true;
}

/* The place is not seized for it, as who releases the block would not find it then. */
static void make_coarser(struct live_block *how, uint64_t mean)
{
	uint64_t was = __atomic_load_n(&how->mean, __ATOMIC_RELAXED);
	uint64_t size = __atomic_load_n(&how->size, __ATOMIC_RELAXED);

	if (was && was < mean &&
	    __atomic_compare_exchange_n(
		&how->mean, &was, mean, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		add_to(&totals.live_bytes,
		    sampler_stands_for(size, mean) - sampler_stands_for(size, was));
}

static void take_out(struct table *t, uint64_t *slot, uint64_t address, uint64_t birth)
{
	struct live_block was;

	if (!seize(slot, address))
		return;
	was = *how_of(t, slot);
	if (was.birth != birth) { /* another, at this very moment */
		__atomic_store_n(slot, address, __ATOMIC_RELEASE);
		return;
	}
	__atomic_store_n(slot, 0, __ATOMIC_RELEASE);
	filter_lower(live_blocks_slot((void *)(uintptr_t)address));
	count_less(&was);
}

void live_blocks_thin(uint64_t address, uint64_t birth, uint64_t mean)
{
	for (struct table *t = __atomic_load_n(&newest, __ATOMIC_ACQUIRE); t; t = t->older)
		for (unsigned i = 0; i < 2 * BUCKET; i++) {
			uint64_t *slot = &bucket_of(t, address, i / BUCKET)[i % BUCKET];

			if (__atomic_load_n(slot, __ATOMIC_ACQUIRE) != address ||
			    __atomic_load_n(&how_of(t, slot)->birth, __ATOMIC_RELAXED) != birth)
				continue;
			if (mean)
				make_coarser(how_of(t, slot), mean);
			else
				take_out(t, slot, address, birth);
			return;
		}
}

uint64_t live_blocks_bytes(void)
{
	uint64_t bytes = 0;

	for (struct table *t = __atomic_load_n(&newest, __ATOMIC_ACQUIRE); t; t = t->older)
		bytes += table_bytes(t->mask + 1);
	return bytes;
}

void live_blocks_forked(uint64_t start)
{
	/* the thread that was at it did not come along */
	growing = false;
	first_own = start;
	totals = (struct live_blocks_totals){0};
}
