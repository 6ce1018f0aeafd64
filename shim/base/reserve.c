/*
 * reserve.c - the address space of reserve.h. A mapping with MAP_FIXED over another of the same
 * size needs no more address space, so a thread can fill chunk after chunk where the host gets
 * nothing. Must not touch memory that it does not own: after a failed replacement the range may
 * belong to the host.
 */
#include "base/reserve.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "whyoom/trace.h"

#define PAGE 4096u

/* --- ranges for chunks: the address, with the number of 64 KiB slots in its low bits --- */

#define RANGES 32u
#define RANGES_WANTED (8u * TRACE_SLOT_BYTES)
#define RANGES_MOST (64u * TRACE_SLOT_BYTES)
#define SLOTS_OF(range) ((range) & (PAGE - 1))
#define START_OF(range) ((range) & ~(uint64_t)(PAGE - 1))

static uint64_t ranges[RANGES];
static uint64_t range_bytes; /* bytes in them */
static bool refused; /* the kernel's last answer */

static void unmap(uint64_t start, size_t bytes)
{
	sys_call(SYS_munmap, (long)start, (long)bytes, 0, 0, 0, 0);
}

static void range_put(uint64_t start, size_t bytes)
{
	uint64_t range = start | bytes / TRACE_SLOT_BYTES, none;

	__atomic_fetch_add(&range_bytes, bytes, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < RANGES; i++) {
		none = 0;
		if (__atomic_compare_exchange_n(
			&ranges[i], &none, range, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			return;
	}
	__atomic_fetch_sub(&range_bytes, bytes, __ATOMIC_RELAXED);
	unmap(start, bytes);
}

void *reserve_take(size_t bytes)
{
	uint64_t slots = bytes / TRACE_SLOT_BYTES;

	/* first one of exactly this size: large ones are for large chunks */
	for (unsigned i = 0; i < 2 * RANGES; i++) {
		uint64_t *place = &ranges[i % RANGES];
		uint64_t range = __atomic_load_n(place, __ATOMIC_RELAXED);

		if (i < RANGES ? SLOTS_OF(range) != slots : SLOTS_OF(range) < slots)
			continue;
		if (!__atomic_compare_exchange_n(
			place, &range, 0, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		__atomic_fetch_sub(
		    &range_bytes, SLOTS_OF(range) * TRACE_SLOT_BYTES, __ATOMIC_RELAXED);
		if (SLOTS_OF(range) > slots)
			range_put(
			    START_OF(range) + bytes, (SLOTS_OF(range) - slots) * TRACE_SLOT_BYTES);
		return (void *)START_OF(range);
	}
	return NULL;
}

/* After a failed replacement the old mapping usually remains, but the kernel does not promise
 * it. */
static bool still_there(const void *p)
{
	unsigned char page;

	return sys_call(SYS_mincore, (long)p, PAGE, (long)&page, 0, 0, 0) == 0;
}

void reserve_give_back(void *range, size_t bytes)
{
	if (still_there(range))
		range_put((uintptr_t)range, bytes);
}

bool reserve_keep(void *mapping, size_t bytes)
{
	uint64_t most = __atomic_load_n(&refused, __ATOMIC_RELAXED) ? RANGES_MOST : RANGES_WANTED;
	long p;

	if (__atomic_load_n(&range_bytes, __ATOMIC_RELAXED) + bytes > most ||
	    bytes % TRACE_SLOT_BYTES)
		return false;
	p = sys_call(SYS_mmap, (long)mapping, (long)bytes, PROT_NONE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	if (p != (long)mapping)
		return !still_there(mapping);
	range_put((uintptr_t)mapping, bytes);
	return true;
}

void reserve_refused(void)
{
	__atomic_store_n(&refused, true, __ATOMIC_RELAXED);
}

/* --- pages for tables: regions of up to 64 pages, one bit a page --- */

#define REGION_PAGES 64u
#define REGIONS 32u

static struct region {
	uint8_t *base;
	size_t bytes;
	uint64_t used; /* pages beyond a smaller region count as used */
} regions[REGIONS];

static bool region_add(void *base, size_t bytes)
{
	size_t pages = bytes / PAGE;
	uint64_t lacking = pages < REGION_PAGES ? ~0ull << pages : 0;

	for (unsigned i = 0; i < REGIONS; i++) {
		uint64_t none = 0;

		if (__atomic_load_n(&regions[i].base, __ATOMIC_RELAXED))
			continue;
		/* all used at first: no thread takes a page of it yet */
		if (!__atomic_compare_exchange_n(
			&regions[i].used, &none, ~0ull, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		regions[i].bytes = bytes;
		__atomic_store_n(&regions[i].base, (uint8_t *)base, __ATOMIC_RELEASE);
		__atomic_store_n(&regions[i].used, lacking, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

/* Turn a range into pages. */
static bool pages_from_range(void)
{
	size_t bytes = REGION_PAGES * PAGE;
	void *range = reserve_take(bytes);
	long p;

	if (!range) {
		bytes = TRACE_SLOT_BYTES;
		range = reserve_take(bytes);
	}
	if (!range)
		return false;
	p = sys_call(SYS_mmap, (long)range, (long)bytes, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (p != (long)range) {
		reserve_give_back(range, bytes);
		return false;
	}
	sys_pages_more(bytes);
	if (region_add(range, bytes))
		return true;
	sys_pages_free(range, bytes);
	return false;
}

static void *pages_find(unsigned pages)
{
	uint64_t mask = (1ull << pages) - 1, used;

	for (unsigned i = 0; i < REGIONS; i++) {
		uint8_t *base = __atomic_load_n(&regions[i].base, __ATOMIC_ACQUIRE);

		used = __atomic_load_n(&regions[i].used, __ATOMIC_ACQUIRE);
		for (unsigned shift = 0; base && shift + pages <= REGION_PAGES;) {
			if (used & mask << shift)
				shift++;
			else if (__atomic_compare_exchange_n(&regions[i].used, &used,
				     used | mask << shift, false, __ATOMIC_ACQUIRE,
				     __ATOMIC_ACQUIRE))
				return base + shift * PAGE;
		}
	}
	return NULL;
}

static void *pages_take(size_t bytes)
{
	size_t pages = (bytes + PAGE - 1) / PAGE;
	void *p;

	if (!pages || pages > REGION_PAGES / 2)
		return NULL;
	while (!(p = pages_find((unsigned)pages)) && pages_from_range())
		;
	return p;
}

static bool pages_give(void *p, size_t bytes)
{
	uint64_t pages = (bytes + PAGE - 1) / PAGE;

	for (unsigned i = 0; i < REGIONS; i++) {
		uint8_t *base = __atomic_load_n(&regions[i].base, __ATOMIC_ACQUIRE);
		uintptr_t at = (uintptr_t)p - (uintptr_t)base;

		if (!base || at >= regions[i].bytes)
			continue;
		memset(p, 0, pages * PAGE);
		__atomic_fetch_and(
		    &regions[i].used, ~(((1ull << pages) - 1) << at / PAGE), __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

/* Have one region that is less than half used, if the kernel grants it. */
static void pages_fill(void)
{
	size_t bytes = REGION_PAGES * PAGE;
	void *base;

	for (unsigned i = 0; i < REGIONS; i++)
		if (__atomic_load_n(&regions[i].base, __ATOMIC_RELAXED) &&
		    __builtin_popcountll(__atomic_load_n(&regions[i].used, __ATOMIC_RELAXED)) <
			(int)REGION_PAGES / 2)
			return;
	base = sys_pages(bytes);
	if (base && !region_add(base, bytes))
		sys_pages_free(base, bytes);
}

void reserve_granted(void)
{
	uint64_t now = __atomic_load_n(&range_bytes, __ATOMIC_RELAXED);
	void *range;
	long p;

	if (__atomic_load_n(&refused, __ATOMIC_RELAXED)) {
		__atomic_store_n(&refused, false, __ATOMIC_RELAXED);
		pages_fill();
	}
	for (; now > RANGES_WANTED; now -= TRACE_SLOT_BYTES) {
		range = reserve_take(TRACE_SLOT_BYTES);
		if (!range)
			return;
		unmap((uintptr_t)range, TRACE_SLOT_BYTES);
	}
	if (now == RANGES_WANTED)
		return;
	p = sys_call(SYS_mmap, 0, (long)(RANGES_WANTED - now), PROT_NONE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p > 0 || p < -4095)
		range_put((uint64_t)p, RANGES_WANTED - now);
}

uint64_t reserve_bytes(void)
{
	return __atomic_load_n(&range_bytes, __ATOMIC_RELAXED);
}

void reserve_init(void)
{
	pages_fill();
	reserve_granted();
	sys_pages_reserve(pages_take, pages_give);
}
