/* levels_malloc.c - see levels_malloc.h. */
#include "levels/levels_malloc.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/shim_state.h"
#include "base/sys.h"
#include "loaded/symbols.h"
#include "whyoom/trace.h"

#define SHARE 50 /* an answer that took t is repeated after SHARE * t at the earliest */
#define SLOW 50 /* in 100 ms: an answer that takes longer delays other threads noticeably */
#define SMALL (1u << 20)

/* glibc's, written out: its headers have the second one only from 2.33. */
struct info_int {
	int arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
struct info_size {
	size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks,
	    keepcost;
};

static struct {
	/* Asks the owner by one of the functions below; NULL: it cannot be asked. */
	unsigned (*ask)(struct level *out);
	struct info_size (*mallinfo2)(void);
	struct info_int (*mallinfo)(void);
	int (*mallctl)(const char *, void *, size_t *, void *, size_t);
	int (*tcmalloc_property)(const char *, size_t *);
	void (*mi_process_info)(
	    size_t *, size_t *, size_t *, size_t *, size_t *, size_t *, size_t *, size_t *);
} owner;
/* Ticks. Separate, so that earlier questions do not delay those after a failure. */
static uint64_t failed_due, grown_due;
static uint64_t next_resident; /* bytes: above this the process has grown */

/* Blocks in thread caches count as used, and so do blocks with a mapping of their own. */
static unsigned put_info(struct level *out, const struct info_size *m)
{
	unsigned n = level_put(out, 0, TRACE_LEVEL_MALLOC_ARENA, m->arena);

	n = level_put(out, n, TRACE_LEVEL_MALLOC_MMAP, m->hblkhd);
	n = level_put(out, n, TRACE_LEVEL_MALLOC_USED, m->uordblks);
	n = level_put(out, n, TRACE_LEVEL_MALLOC_FREE, m->fordblks);
	return level_put(out, n, TRACE_LEVEL_MALLOC_TRIMMABLE, m->keepcost);
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
	/* 32-bit numbers, which wrap: useful only where nothing can be larger. */
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

/* For owners that say how much they hold. The parts are not read at one moment. */
static unsigned put_held(struct level *out, size_t held, size_t used, size_t trimmable)
{
	used = used < held ? used : held;
	return put_info(out,
	    &(struct info_size){
		.arena = held, .uordblks = used, .fordblks = held - used, .keepcost = trimmable});
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
	uint64_t epoch = 1, mapped, allocated, metadata = 0, retained = 0;
	size_t bytes = sizeof(epoch);

	/* Writing it updates the statistics. */
	if (owner.mallctl("epoch", &epoch, &bytes, &epoch, sizeof(epoch)) ||
	    !ask("stats.mapped", &mapped) || !ask("stats.allocated", &allocated))
		return 0;
	ask("stats.metadata", &metadata);
	ask("stats.retained", &retained);
	return put_held(out, mapped + retained, allocated + metadata, retained);
}

static unsigned ask_tcmalloc(struct level *out)
{
	size_t held = 0, used = 0, free_pages = 0;

	if (!owner.tcmalloc_property("generic.heap_size", &held) ||
	    !owner.tcmalloc_property("generic.current_allocated_bytes", &used))
		return 0;
	owner.tcmalloc_property("tcmalloc.pageheap_free_bytes", &free_pages);
	return put_held(out, held, used, free_pages);
}

/* mimalloc tells what it has taken, not what is used. */
static unsigned ask_mimalloc(struct level *out)
{
	size_t unused, committed = 0;

	owner.mi_process_info(
	    &unused, &unused, &unused, &unused, &unused, &committed, &unused, &unused);
	if (!committed)
		return 0;
	return level_put(out, level_put(out, 0, TRACE_LEVEL_MALLOC_ARENA, committed),
	    TRACE_LEVEL_MALLOC_MMAP, 0);
}

/* A function counts only if the owner defines it: programs preload functions of the same name. */
static bool find_in_owner(const char *name, void *to, unsigned (*by)(struct level *))
{
	uintptr_t found = (uintptr_t)symbols_find(name);

	if (!found || found - shim.owner_low >= shim.owner_high - shim.owner_low)
		return false;
	memcpy(to, &found, sizeof(found));
	owner.ask = by;
	return true;
}

void levels_malloc_init(void)
{
	static uintptr_t low, high;

	failed_due = grown_due = next_resident = 0;
	if (low == shim.owner_low && high == shim.owner_high)
		return; /* the child of a fork must not walk the loader's list */
	low = shim.owner_low;
	high = shim.owner_high;
	memset(&owner, 0, sizeof(owner));
	if (shim.owner_is_libc)
		(void)(find_in_owner("mallinfo2", &owner.mallinfo2, ask_glibc) ||
		       find_in_owner("mallinfo", &owner.mallinfo, ask_glibc));
	else
		(void)(find_in_owner("mallctl", &owner.mallctl, ask_jemalloc) ||
		       find_in_owner("MallocExtension_GetNumericProperty", &owner.tcmalloc_property,
			   ask_tcmalloc) ||
		       find_in_owner("mi_process_info", &owner.mi_process_info, ask_mimalloc));
}

static bool take(uint64_t *due, uint64_t now)
{
	uint64_t when = __atomic_load_n(due, __ATOMIC_RELAXED);

	return owner.ask && now >= when &&
	       __atomic_compare_exchange_n(due, &when, now + tick_clock.ticks_100ms, false,
		   __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

bool levels_malloc_due(uint64_t now)
{
	return take(&failed_due, now);
}

bool levels_malloc_grown(uint64_t now, uint64_t resident)
{
	return resident > __atomic_load_n(&next_resident, __ATOMIC_RELAXED) &&
	       take(&grown_due, now);
}

unsigned levels_malloc_read(struct level *out, uint64_t resident)
{
	uint64_t start = clock_ticks(), least = resident ? 0 : tick_clock.ticks_100ms, cost, mask;
	int saved = errno;
	unsigned n;

	/* A handler that never returns would leave the allocator's locks taken. */
	mask = sys_block_signals();
	n = owner.ask ? owner.ask(out) : 0;
	sys_restore_signals(mask);
	errno = saved;
	cost = clock_ticks() - start;
	__atomic_store_n(resident ? &grown_due : &failed_due,
	    start + (SHARE * cost > least ? SHARE * cost : least), __ATOMIC_RELAXED);
	if (resident)
		__atomic_store_n(&next_resident,
		    resident + (cost > tick_clock.ticks_100ms / SLOW ? resident : resident / 8) +
			SMALL,
		    __ATOMIC_RELAXED);
	return n;
}
