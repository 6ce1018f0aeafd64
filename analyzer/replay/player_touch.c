/* player_touch.c - see player_touch.h. Allocates nothing. */
#include "replay/player_touch.h"

#include <stddef.h>
#include <sys/mman.h>

#include "util/sort.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

#define NOTES 65536u
#define DEFERRED (32u << 10) /* bytes: a smaller stretch is not worth a note */
#define LOOK 4096u /* pages to look at in one call, */
#define LOOK_LEAST 16u /* and if not all of them are mapped any more */

static uint64_t page;
static struct sort_item *notes; /* key: the first byte; value: behind the last */
static uint32_t count;

static int populate(uint64_t from, uint64_t to)
{
	return madvise((void *)from, to - from, MADV_POPULATE_WRITE);
}

/* An old kernel cannot; then each stretch is written to at once. */
static bool can_populate(void)
{
	void *p = mmap(
	    NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	bool can;

	if (p == MAP_FAILED)
		return false;
	can = !populate((uint64_t)p, (uint64_t)p + page);
	munmap(p, page);
	return can;
}

bool player_touch_begin(uint64_t page_bytes)
{
	void *p;

	page = page_bytes;
	if (!can_populate())
		return true;
	/* Shared, so that it does not count as anonymous memory. */
	p = mmap(NULL, NOTES * sizeof(*notes), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return false;
	notes = p;
	return true;
}

static void write_to(void *address, uint64_t from, uint64_t to)
{
	volatile char *at = address;

	at[from] = 1;
	for (uint64_t i = (from / page + 1) * page; i < to; i += page)
		at[i] = 1;
}

void player_touch(void *address, uint64_t from, uint64_t to)
{
	uint32_t at;

	if (to <= from)
		return;
	if (!notes || to - from < DEFERRED ||
	    (at = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED)) >= NOTES) {
		write_to(address, from, to);
		return;
	}
	notes[at] = (struct sort_item){(uint64_t)address + from, (char *)address + to};
}

/* mincore() finds that a page is there ten times faster than madvise(). False: not all are
 * mapped. */
static bool populate_absent(uint64_t from, uint32_t pages)
{
	static unsigned char there[LOOK];
	uint32_t first = 0;

	if (mincore((void *)from, pages * page, there))
		return false;
	while (first < pages) {
		uint32_t end = first;

		while (end < pages && !(there[end] & 1))
			end++;
		/* Fails on pages that are not writable: those belong to no block. */
		if (end > first)
			populate(from + first * page, from + end * page);
		first = end + 1;
	}
	return true;
}

static void populate_mapped(uint64_t from, uint64_t to, uint32_t look)
{
	while (from < to) {
		uint64_t left = (to - from) / page;
		uint32_t pages = left < look ? (uint32_t)left : look;

		/* A hole belongs to no block. */
		if (!populate_absent(from, pages) && look > LOOK_LEAST)
			populate_mapped(from, from + pages * page, LOOK_LEAST);
		from += pages * page;
	}
}

void player_touch_all(void)
{
	uint32_t n = count < NOTES ? count : NOTES;
	uint64_t from = 0, to = 0;

	count = 0;
	if (n)
		sort_items(notes, n);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t first = notes[i].key / page * page,
			 end = ((uint64_t)notes[i].value + page - 1) / page * page;

		if (first > to) {
			if (to)
				populate_mapped(from, to, LOOK);
			from = first;
			to = end;
		} else if (end > to) {
			to = end;
		}
	}
	if (to)
		populate_mapped(from, to, LOOK);
}
