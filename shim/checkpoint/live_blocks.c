/*
 * live_blocks.c - see live_blocks.h. An address lies in one of the two buckets that its hash names,
 * each a cache line. A full table is followed by one twice as large; its blocks stay where they are
 * and look-ups go through all tables, which is rare, as the filter answers most. Behind the
 * addresses of a table lie the blocks' attributes, slot by slot, for checkpoints.
 */
#include "checkpoint/live_blocks.h"

#include "base/clock.h"
#include "base/shim_state.h"
#include "base/sys.h"
#include "checkpoint/freed_stats.h"
#include "sampling/sampler.h"

#define BUCKET_SLOTS 8u /* addresses */
#define FIRST_BUCKETS 512u

#define BUSY 1u /* no block's address: a thread reads or writes the slot's attributes */

struct table {
	struct table *older;
	struct live_block *info; /* of each slot */
	uint64_t mask; /* of buckets */
	uint64_t padding[5]; /* aligns buckets to cache lines */
	uint64_t slots[];
};

uint8_t live_blocks_filter[LIVE_BLOCKS_FILTER_SLOTS] __attribute__((aligned(64)));

static struct table *newest_table;
static bool grow_lock;
static uint64_t own_since; /* ticks; older blocks were inherited through a fork */
static struct live_blocks_totals totals;

static void add_to(uint64_t *sum, uint64_t n)
{
	__atomic_fetch_add(sum, n, __ATOMIC_RELAXED);
}

static void raise_peak(uint64_t bytes)
{
	uint64_t most = __atomic_load_n(&totals.peak_bytes, __ATOMIC_RELAXED);

	while (bytes > most && bytes < UINT64_MAX / 2 &&
	       !__atomic_compare_exchange_n(
		   &totals.peak_bytes, &most, bytes, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void count_acquired(const struct live_block *info)
{
	uint64_t bytes = sampler_stands_for(info->size, info->mean);

	add_to(&totals.acquired, 1);
	add_to(&totals.acquired_bytes, bytes);
	add_to(&totals.live, 1);
	add_to(&totals.live_sampled, info->mean != 0);
	raise_peak(__atomic_add_fetch(&totals.live_bytes, bytes, __ATOMIC_RELAXED));
}

/* The block left the table, by its release or by resampling. */
static void count_removed(const struct live_block *info)
{
	add_to(&totals.live, -1ull);
	add_to(&totals.live_sampled, -(uint64_t)(info->mean != 0));
	add_to(&totals.live_bytes, -sampler_stands_for(info->size, info->mean));
}

static void count_released(const struct live_block *info)
{
	if (info->birth < own_since)
		return;
	freed_stats_add_host(info);
	add_to(&totals.released, 1);
	add_to(&totals.released_bytes, sampler_stands_for(info->size, info->mean));
	count_removed(info);
}

static uint64_t *bucket_of(struct table *t, uint64_t address, unsigned which)
{
	uint64_t h = address * 0x9e3779b97f4a7c15ull;

	return &t->slots[((which ? h >> 20 : h >> 40) & t->mask) * BUCKET_SLOTS];
}

static void filter_raise(uint8_t *slot)
{
	uint8_t was = __atomic_load_n(slot, __ATOMIC_RELAXED);

	while (was != UINT8_MAX && !__atomic_compare_exchange_n(slot, &was, (uint8_t)(was + 1),
				       true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void filter_lower(uint8_t *slot)
{
	uint8_t was = __atomic_load_n(slot, __ATOMIC_RELAXED);

	while (was != UINT8_MAX && was &&
	       !__atomic_compare_exchange_n(
		   slot, &was, (uint8_t)(was - 1), true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static struct live_block *info_of(struct table *t, const uint64_t *slot)
{
	return &t->info[slot - t->slots];
}

/* The slot is the caller's until it stores another word there. */
static bool slot_lock(uint64_t *slot, uint64_t word)
{
	return __atomic_load_n(slot, __ATOMIC_RELAXED) == word &&
	       __atomic_compare_exchange_n(
		   slot, &word, BUSY, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void slot_fill(
    struct table *t, uint64_t *slot, uint64_t address, const struct live_block *info)
{
	*info_of(t, slot) = *info;
	__atomic_store_n(slot, address, __ATOMIC_RELEASE);
}

/* Returns the address's slot, locked; NULL: it is not here. */
static uint64_t *find(struct table *t, uint64_t address)
{
	for (unsigned which = 0; which < 2; which++) {
		uint64_t *slot = bucket_of(t, address, which);

		for (unsigned i = 0; i < BUCKET_SLOTS; i++)
			if (slot_lock(&slot[i], address))
				return &slot[i];
	}
	return NULL;
}

/* Returns false if both buckets are full. */
static bool store(struct table *t, uint64_t address, const struct live_block *info)
{
	for (unsigned which = 0; which < 2; which++) {
		uint64_t *slot = bucket_of(t, address, which);

		for (unsigned i = 0; i < BUCKET_SLOTS; i++)
			if (slot_lock(&slot[i], 0)) {
				slot_fill(t, &slot[i], address, info);
				return true;
			}
	}
	return false;
}

static size_t table_bytes(uint64_t buckets)
{
	return sizeof(struct table) +
	       buckets * BUCKET_SLOTS * (sizeof(uint64_t) + sizeof(struct live_block));
}

/* Puts a larger table in front, unless another thread has done so. False: no memory, or the thread
 * that grows it takes too long: this may be its signal handler. */
static bool grow(struct table *full)
{
	uint64_t buckets = full ? (full->mask + 1) * 2 : FIRST_BUCKETS, until = 0;
	struct table *t;

	if (shim.sandboxed)
		return false;
	while (__atomic_exchange_n(&grow_lock, true, __ATOMIC_ACQUIRE)) {
		if (__atomic_load_n(&newest_table, __ATOMIC_ACQUIRE) != full)
			return true;
		if (!until)
			until = clock_ticks() + tick_clock.ticks_100ms / 10;
		else if (clock_ticks() > until)
			return false;
		sys_yield();
	}
	t = __atomic_load_n(&newest_table, __ATOMIC_ACQUIRE);
	if (t == full) {
		t = sys_pages(table_bytes(buckets));
		if (t) {
			t->info = (struct live_block *)(void *)(t->slots + buckets * BUCKET_SLOTS);
			t->older = full;
			t->mask = buckets - 1;
			__atomic_store_n(&newest_table, t, __ATOMIC_RELEASE);
		}
	}
	__atomic_store_n(&grow_lock, false, __ATOMIC_RELEASE);
	return t != NULL;
}

bool live_blocks_add(const void *block, const struct live_block *info)
{
	struct table *first;
	uint8_t *slot = live_blocks_slot(block);
	bool stored = false;

	live_blocks_take(block, NULL);
	/* first, so that no thread finds the address while the filter says that it is not there */
	filter_raise(slot);
	first = __atomic_load_n(&newest_table, __ATOMIC_ACQUIRE);
	do {
		for (struct table *t = first; t && !stored; t = t->older)
			stored = store(t, (uintptr_t)block, info);
	} while (!stored && grow(first) &&
		 (first = __atomic_load_n(&newest_table, __ATOMIC_ACQUIRE)) != NULL);
	if (stored)
		count_acquired(info);
	else
		filter_lower(slot);
	return stored;
}

void live_blocks_reserve(void)
{
	struct table *first = __atomic_load_n(&newest_table, __ATOMIC_ACQUIRE);
	uint64_t slots = 0;

	for (struct table *t = first; t; t = t->older)
		slots += (t->mask + 1) * BUCKET_SLOTS;
	if (__atomic_load_n(&totals.live, __ATOMIC_RELAXED) > slots / 4 * 3)
		grow(first);
}

bool live_blocks_take(const void *block, struct live_block *info)
{
	uint64_t address = (uintptr_t)block, *slot = NULL;
	struct live_block was;
	struct table *t;

	if (!live_blocks_maybe(block))
		return false;
	for (t = __atomic_load_n(&newest_table, __ATOMIC_ACQUIRE); t; t = t->older)
		if ((slot = find(t, address)))
			break;
	if (!slot)
		return false;
	was = *info_of(t, slot);
	__atomic_store_n(slot, 0, __ATOMIC_RELEASE);
	filter_lower(live_blocks_slot(block));
	count_released(&was);
	if (info)
		*info = was;
	return true;
}

struct live_blocks_totals live_blocks_totals(void)
{
	struct live_blocks_totals now;

	now.acquired = __atomic_load_n(&totals.acquired, __ATOMIC_RELAXED);
	now.acquired_bytes = __atomic_load_n(&totals.acquired_bytes, __ATOMIC_RELAXED);
	now.released = __atomic_load_n(&totals.released, __ATOMIC_RELAXED);
	now.released_bytes = __atomic_load_n(&totals.released_bytes, __ATOMIC_RELAXED);
	now.live = __atomic_load_n(&totals.live, __ATOMIC_RELAXED);
	now.live_bytes = __atomic_load_n(&totals.live_bytes, __ATOMIC_RELAXED);
	now.live_sampled = __atomic_load_n(&totals.live_sampled, __ATOMIC_RELAXED);
	now.peak_bytes = __atomic_load_n(&totals.peak_bytes, __ATOMIC_RELAXED);
	return now;
}

struct live_blocks_totals live_blocks_period_begin(void)
{
	struct live_blocks_totals now = live_blocks_totals();

	now.peak_bytes = __atomic_exchange_n(&totals.peak_bytes, now.live_bytes, __ATOMIC_RELAXED);
	return now;
}

void live_blocks_period_commit(const struct live_blocks_totals *period)
{
	add_to(&totals.acquired, -period->acquired);
	add_to(&totals.acquired_bytes, -period->acquired_bytes);
	add_to(&totals.released, -period->released);
	add_to(&totals.released_bytes, -period->released_bytes);
}

void live_blocks_period_abort(const struct live_blocks_totals *period)
{
	raise_peak(period->peak_bytes);
}

/* Returns the slot's address and attributes; 0: empty, or it changes all the time. */
static uint64_t slot_read(struct table *t, uint64_t i, struct live_block *info)
{
	for (int tries = 0; tries < 64; tries++) {
		uint64_t address = __atomic_load_n(&t->slots[i], __ATOMIC_ACQUIRE);

		if (!address)
			return 0;
		if (address != BUSY) {
			*info = t->info[i];
			__atomic_thread_fence(__ATOMIC_ACQUIRE);
			if (__atomic_load_n(&t->slots[i], __ATOMIC_RELAXED) == address &&
			    __atomic_load_n(&t->info[i].birth, __ATOMIC_RELAXED) == info->birth)
				return address;
		}
		if (tries >= 32)
			sys_yield();
	}
	return 0;
}

bool live_blocks_each(uint64_t until,
    bool (*each)(void *arg, uint64_t address, const struct live_block *info), void *arg)
{
	struct live_block info;

	for (struct table *t = __atomic_load_n(&newest_table, __ATOMIC_ACQUIRE); t; t = t->older)
		for (uint64_t i = 0; i < (t->mask + 1) * BUCKET_SLOTS; i++) {
			uint64_t address = slot_read(t, i, &info);

			if (address && info.birth >= own_since && info.birth <= until &&
			    !each(arg, address, &info))
				return false;
		}
	return true;
}

/* Leaves the slot unlocked, as a thread that releases the block would not find it otherwise. */
static void raise_mean(struct live_block *info, uint64_t mean)
{
	uint64_t was = __atomic_load_n(&info->mean, __ATOMIC_RELAXED);
	uint64_t size = __atomic_load_n(&info->size, __ATOMIC_RELAXED);

	if (was && was < mean &&
	    __atomic_compare_exchange_n(
		&info->mean, &was, mean, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		add_to(&totals.live_bytes,
		    sampler_stands_for(size, mean) - sampler_stands_for(size, was));
}

static void remove_block(struct table *t, uint64_t *slot, uint64_t address, uint64_t birth)
{
	struct live_block was;

	if (!slot_lock(slot, address))
		return;
	was = *info_of(t, slot);
	if (was.birth != birth) { /* another block came in between */
		__atomic_store_n(slot, address, __ATOMIC_RELEASE);
		return;
	}
	__atomic_store_n(slot, 0, __ATOMIC_RELEASE);
	filter_lower(live_blocks_slot((void *)(uintptr_t)address));
	count_removed(&was);
}

void live_blocks_resample(uint64_t address, uint64_t birth, uint64_t mean)
{
	for (struct table *t = __atomic_load_n(&newest_table, __ATOMIC_ACQUIRE); t; t = t->older)
		for (unsigned i = 0; i < 2 * BUCKET_SLOTS; i++) {
			uint64_t *slot = &bucket_of(t, address, i / BUCKET_SLOTS)[i % BUCKET_SLOTS];

			if (__atomic_load_n(slot, __ATOMIC_ACQUIRE) != address ||
			    __atomic_load_n(&info_of(t, slot)->birth, __ATOMIC_RELAXED) != birth)
				continue;
			if (mean)
				raise_mean(info_of(t, slot), mean);
			else
				remove_block(t, slot, address, birth);
			return;
		}
}

void live_blocks_clear(void)
{
	struct live_block info;

	for (struct table *t = __atomic_load_n(&newest_table, __ATOMIC_ACQUIRE); t; t = t->older)
		for (uint64_t i = 0; i < (t->mask + 1) * BUCKET_SLOTS; i++) {
			uint64_t address = slot_read(t, i, &info);

			if (address)
				remove_block(t, &t->slots[i], address, info.birth);
		}
}

void live_blocks_forked(uint64_t start)
{
	/* the thread that held it is not in the child */
	grow_lock = false;
	own_since = start;
	totals = (struct live_blocks_totals){0};
}
