/*
 * known.c - the table behind known.h's filter. An address lies in one of the two buckets that its
 * hash names, each a cache line. A full table is followed by one twice as large; what lies in the
 * old one stays there, and look-ups go through all of them: the filter keeps most from coming here.
 */
#include "known.h"

#include "lifecycle.h"
#include "sys.h"

#define BUCKET 8u /* addresses */
#define FIRST_BUCKETS 512u

struct table {
	struct table *older;
	uint64_t mask; /* of buckets */
	uint64_t to_line[6]; /* buckets are cache lines */
	uint64_t slots[];
};

uint8_t known_filter[KNOWN_PLACES] __attribute__((aligned(64)));

static struct table *newest;
static bool growing;

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

/* 1 stored, 0 both buckets are full, -1 it is there already. */
static int store(struct table *t, uint64_t address)
{
	for (unsigned which = 0; which < 2; which++) {
		uint64_t *slot = bucket_of(t, address, which);

		for (unsigned i = 0; i < BUCKET; i++) {
			uint64_t was = __atomic_load_n(&slot[i], __ATOMIC_RELAXED);

			if (was == address)
				return -1;
			if (!was && __atomic_compare_exchange_n(&slot[i], &was, address, false,
					__ATOMIC_RELEASE, __ATOMIC_RELAXED))
				return 1;
		}
	}
	return 0;
}

/* A larger table in front. False: no memory, or somebody is at it. */
static bool grow(struct table *full)
{
	uint64_t buckets = full ? (full->mask + 1) * 2 : FIRST_BUCKETS;
	struct table *t;

	if (shim.sandboxed || __atomic_exchange_n(&growing, true, __ATOMIC_ACQUIRE))
		return false;
	t = __atomic_load_n(&newest, __ATOMIC_ACQUIRE);
	if (t == full) {
		t = sys_pages(sizeof(*t) + buckets * BUCKET * sizeof(t->slots[0]));
		if (t) {
			t->older = full;
			t->mask = buckets - 1;
			__atomic_store_n(&newest, t, __ATOMIC_RELEASE);
		}
	}
	__atomic_store_n(&growing, false, __ATOMIC_RELEASE);
	return t != NULL;
}

bool known_add(const void *block)
{
	struct table *first = __atomic_load_n(&newest, __ATOMIC_ACQUIRE);
	uint8_t *place = known_place(block);
	int stored = 0;

	/* before the address can be found, so that nobody finds it and sees the place empty */
	filter_raise(place);
	do {
		for (struct table *t = first; t && !stored; t = t->older)
			stored = store(t, (uintptr_t)block);
	} while (
	    !stored && grow(first) && (first = __atomic_load_n(&newest, __ATOMIC_ACQUIRE)) != NULL);
	if (stored <= 0)
		filter_lower(place);
	return stored != 0;
}

bool known_take(const void *block)
{
	uint64_t address = (uintptr_t)block;

	if (!known_maybe(block))
		return false;
	for (struct table *t = __atomic_load_n(&newest, __ATOMIC_ACQUIRE); t; t = t->older) {
		for (unsigned which = 0; which < 2; which++) {
			uint64_t *slot = bucket_of(t, address, which);

			for (unsigned i = 0; i < BUCKET; i++) {
				uint64_t was = address;

				if (__atomic_load_n(&slot[i], __ATOMIC_RELAXED) != address ||
				    !__atomic_compare_exchange_n(&slot[i], &was, 0, false,
					__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
					continue;
				filter_lower(known_place(block));
				return true;
			}
		}
	}
	return false;
}

void known_forked(void)
{
	/* the thread that was at it did not come along */
	growing = false;
}
