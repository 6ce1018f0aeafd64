/* scratch.c - see scratch.h. Does not use the reserve's pages, which are for small tables: these
 * grow. */
#include "base/scratch.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/sys.h"

#define PAGE ((size_t)4096)
#define SPARE ((size_t)4 << 20) /* memory beyond this and half of the need is given back */

size_t scratch_piece(size_t bytes)
{
	return (bytes + PAGE - 1) & ~(PAGE - 1);
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Populate pages before they are needed; a cgroup may have none left by then. */
static void make_resident(struct scratch *h, size_t bytes)
{
	for (size_t at = h->resident; at < least(h->bytes, bytes); at += PAGE) {
		*(volatile uint8_t *)(h->base + at) = 0;
		h->resident = at + PAGE;
	}
}

bool scratch_ready(struct scratch *h, size_t bytes, size_t resident)
{
	uint8_t *base = h->base;
	size_t was = h->bytes;
	long p;

	bytes = scratch_piece(bytes);
	if (bytes <= was && was - bytes <= was / 2 + SPARE) {
		make_resident(h, resident);
		return true;
	}
	h->base = NULL; /* as in sys_pages_free() */
	if (was) /* asks the kernel only for the difference */
		p = sys_call(SYS_mremap, (long)base, (long)was, (long)bytes, MREMAP_MAYMOVE, 0, 0);
	else
		p = sys_map(bytes);
	if (!sys_failed(p)) {
		sys_pages_more(bytes - was); /* fewer where it wraps */
		base = (uint8_t *)p;
		h->bytes = bytes;
		h->resident = least(h->resident, bytes);
	}
	__atomic_store_n(&h->base, base, __ATOMIC_RELEASE);
	if (sys_failed(p))
		return bytes <= was;
	make_resident(h, resident);
	return true;
}

void *scratch_take(struct scratch *h, size_t bytes)
{
	void *p;

	bytes = scratch_piece(bytes);
	if (bytes <= h->bytes - h->used) {
		p = h->base + h->used;
		h->used += bytes;
		return p;
	}
	p = h->more_count < SCRATCH_MORE ? sys_pages(bytes) : NULL;
	if (p) {
		h->more[h->more_count].pages = p;
		h->more[h->more_count].bytes = bytes;
		__atomic_store_n(&h->more_count, h->more_count + 1, __ATOMIC_RELEASE);
	}
	h->refused |= !p;
	return p;
}

/* Zero pages and give them back, except for those that stay resident. */
static void clear(uint8_t *from, size_t bytes)
{
	enum { DONTNEED = 4 };

	if (bytes && /* locked memory of the program stays, and so does ours */
	    sys_failed(sys_call(SYS_madvise, (long)from, (long)bytes, DONTNEED, 0, 0, 0)))
		memset(from, 0, bytes);
}

void scratch_end(struct scratch *h)
{
	size_t stays = least(h->used, h->resident);

	while (h->more_count) {
		h->more_count--;
		sys_pages_free(h->more[h->more_count].pages, h->more[h->more_count].bytes);
	}
	if (stays)
		memset(h->base, 0, stays);
	clear(h->base + stays, h->used - stays);
	h->used = 0;
	h->refused = false;
}

void scratch_forget(struct scratch *h)
{
	while (h->more_count) {
		h->more_count--;
		sys_pages_free(h->more[h->more_count].pages, h->more[h->more_count].bytes);
	}
	sys_pages_free(h->base, h->bytes);
	memset(h, 0, sizeof(*h));
}
