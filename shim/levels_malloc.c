/* levels_malloc.c - see levels_malloc.h. */
#include "levels_malloc.h"

#include <stddef.h>

#include "clock.h"
#include "lifecycle.h"
#include "resolve.h"
#include "sys.h"
#include "whyoom/trace.h"

#define SHARE 50 /* an answer that took t is not asked for again within SHARE * t */

/* glibc's, written out: its headers have the second one from 2.33 on only. */
struct info_int {
	int arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
struct info_size {
	size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks,
	    keepcost;
};

static struct {
	struct info_size (*mallinfo2)(void);
	struct info_int (*mallinfo)(void);
	int (*mallctl)(const char *, void *, size_t *, void *, size_t);
} owner;
static uint64_t due; /* ticks */

/* A function of that name counts only where it is the owner's: others preload their own. */
static void *owners(const char *name)
{
	uintptr_t found = (uintptr_t)resolve_find(name);

	return found && found - shim.owner_low < shim.owner_high - shim.owner_low ? (void *)found
										  : NULL;
}

void levels_malloc_init(void)
{
	if (shim.owner_is_libc) {
		*(void **)&owner.mallinfo2 = owners("mallinfo2");
		*(void **)&owner.mallinfo = owners("mallinfo");
	} else {
		*(void **)&owner.mallctl = owners("mallctl");
	}
	due = 0;
}

bool levels_malloc_due(uint64_t now)
{
	uint64_t when = __atomic_load_n(&due, __ATOMIC_RELAXED);

	if (!owner.mallinfo2 && !owner.mallinfo && !owner.mallctl)
		return false;
	return now >= when && __atomic_compare_exchange_n(&due, &when, now + tick_clock.ticks_100ms,
				  false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static unsigned put(struct level *out, unsigned n, uint32_t key, uint64_t value)
{
	out[n].key = key;
	out[n].value = value;
	return n + 1;
}

/* What the thread caches hold counts as used; of blocks with a mapping of their own all does. */
static unsigned put_info(struct level *out, const struct info_size *m)
{
	unsigned n = put(out, 0, TRACE_LEVEL_MALLOC_ARENA, m->arena);

	n = put(out, n, TRACE_LEVEL_MALLOC_MMAP, m->hblkhd);
	n = put(out, n, TRACE_LEVEL_MALLOC_USED, m->uordblks);
	n = put(out, n, TRACE_LEVEL_MALLOC_FREE, m->fordblks);
	return put(out, n, TRACE_LEVEL_MALLOC_TRIMMABLE, m->keepcost);
}

static unsigned ask_glibc(struct level *out)
{
	uint64_t size = owner.mallinfo2 ? 0 : levels_vsize();
	struct info_size wide = {0};
	struct info_int m;

	if (owner.mallinfo2) {
		wide = owner.mallinfo2();
		return put_info(out, &wide);
	}
	/* 32 bits, which wrap: only where nothing can be larger. */
	if (!size || size > UINT32_MAX)
		return 0;
	m = owner.mallinfo();
	wide.arena = (unsigned)m.arena;
	wide.hblkhd = (unsigned)m.hblkhd;
	wide.uordblks = (unsigned)m.uordblks;
	wide.fordblks = (unsigned)m.fordblks;
	wide.keepcost = (unsigned)m.keepcost;
	return put_info(out, &wide);
}

static bool ask(const char *name, uint64_t *out)
{
	size_t value = 0, bytes = sizeof(value);

	if (owner.mallctl(name, &value, &bytes, NULL, 0) || bytes != sizeof(value))
		return false;
	*out = value;
	return true;
}

static unsigned ask_jemalloc(struct level *out)
{
	uint64_t epoch = 1, mapped, allocated, metadata = 0, retained = 0, held, used;
	size_t bytes = sizeof(epoch);
	unsigned n;

	/* Writing it brings the statistics up to date. */
	if (owner.mallctl("epoch", &epoch, &bytes, &epoch, sizeof(epoch)) ||
	    !ask("stats.mapped", &mapped) || !ask("stats.allocated", &allocated))
		return 0;
	ask("stats.metadata", &metadata);
	ask("stats.retained", &retained);
	held = mapped + retained;
	used = allocated + metadata;
	if (used > held)
		used = held; /* the parts are not read at one moment */
	n = put(out, 0, TRACE_LEVEL_MALLOC_ARENA, held);
	n = put(out, n, TRACE_LEVEL_MALLOC_MMAP, 0);
	n = put(out, n, TRACE_LEVEL_MALLOC_USED, used);
	n = put(out, n, TRACE_LEVEL_MALLOC_FREE, held - used);
	return put(out, n, TRACE_LEVEL_MALLOC_TRIMMABLE, retained);
}

unsigned levels_malloc_read(struct level *out)
{
	uint64_t start = clock_ticks(), cost, pause, mask;
	unsigned n = 0;

	/* A handler that does not come back would leave the allocator's locks taken. */
	mask = sys_block_signals();
	if (owner.mallctl)
		n = ask_jemalloc(out);
	else if (owner.mallinfo2 || owner.mallinfo)
		n = ask_glibc(out);
	sys_restore_signals(mask);
	cost = clock_ticks() - start;
	pause = SHARE * cost > tick_clock.ticks_100ms ? SHARE * cost : tick_clock.ticks_100ms;
	__atomic_store_n(&due, start + pause, __ATOMIC_RELAXED);
	return n;
}
