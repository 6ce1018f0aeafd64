/* levels_python.c - see levels_python.h. Knows the pools of obmalloc, from CPython 3.8 on. */
#include "levels/levels_python.h"

#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/sys.h"
#include "whyoom/trace.h"

#define SLOTS_FIRST 1024u /* a power of two */
#define SPINS 10000u
#define BATCH 128u
#define GROWN_LEAST (1u << 20)

/* The header of each pool. All blocks of a pool have the size (size_class + 1) * 16; those from
 * `fresh` on were never handed out. */
struct pool {
	uint32_t used; /* blocks */
	uint32_t unused;
	uint64_t links[3];
	uint32_t arena;
	uint32_t size_class; /* 0xffff: none yet */
	uint32_t fresh, fresh_last; /* offsets in the pool */
};
_Static_assert(sizeof(struct pool) == 48, "as obmalloc has it");
#define NO_CLASS 0xffffu
#define CLASSES 32u

/* Open addressing, at most half full; 0 is free. */
static struct {
	uintptr_t *slots;
	size_t room, count;
	size_t arena_bytes, pool_bytes; /* 0: the layout of this version is not known */
	uintptr_t low, high;
	bool locked;
} table;
/* ticks: while it grows, and after failures, which the first does not delay */
static uint64_t due[2];
static uint64_t next_resident; /* bytes: above this the process has grown */

/* One thread at a time. */
static struct {
	bool busy;
	uintptr_t arenas[PYTHON_PROBES];
	struct iovec from[BATCH];
	struct pool pools[BATCH];
} scratch;

/* Sums over the sampled pools. */
struct fill {
	uint64_t pools, cut; /* pools read; pools missing because the arena is not aligned */
	uint64_t used, touched; /* bytes */
};

/* Its holder runs a few hundred instructions; a thread that does not get it goes without. */
static bool lock(void)
{
	for (unsigned i = 0; i < SPINS; i++)
		if (!__atomic_exchange_n(&table.locked, true, __ATOMIC_ACQUIRE))
			return true;
	return false;
}

static void unlock(void)
{
	__atomic_store_n(&table.locked, false, __ATOMIC_RELEASE);
}

void levels_python_found(unsigned minor, uintptr_t low, uintptr_t high)
{
	bool large = minor >= 10;

	if (minor < 8 || minor > 14 || table.arena_bytes)
		return;
	table.low = low;
	table.high = high;
	table.pool_bytes = large ? 16384 : 4096;
	__atomic_store_n(&table.arena_bytes, large ? 1u << 20 : 1u << 18, __ATOMIC_RELEASE);
}

void levels_python_init(void)
{
	unlock();
	scratch.busy = false;
	due[0] = due[1] = next_resident = 0;
}

/* ---- the table ---- */

static size_t slot_of(uintptr_t address)
{
	return (size_t)((address >> 12) * 0x9e3779b97f4a7c15ull >> 20) & (table.room - 1);
}

static void insert(uintptr_t address)
{
	size_t i = slot_of(address);

	while (table.slots[i] && table.slots[i] != address)
		i = (i + 1) & (table.room - 1);
	table.count += !table.slots[i];
	table.slots[i] = address;
}

static bool make_room(void)
{
	size_t room = table.room ? 2 * table.room : SLOTS_FIRST, old_room = table.room;
	uintptr_t *old = table.slots, *slots;

	if (2 * (table.count + 1) <= table.room)
		return true;
	slots = sys_pages(room * sizeof(*slots));
	if (!slots)
		return false;
	table.slots = slots;
	table.room = room;
	table.count = 0;
	for (size_t i = 0; i < old_room; i++)
		if (old[i])
			insert(old[i]);
	if (old)
		sys_pages_free(old, old_room * sizeof(*old));
	return true;
}

/* Entries that follow without a gap may belong into the place that becomes free. */
static void take_out(size_t i)
{
	size_t mask = table.room - 1;

	table.slots[i] = 0;
	table.count--;
	for (size_t j = (i + 1) & mask; table.slots[j]; j = (j + 1) & mask) {
		size_t wanted = slot_of(table.slots[j]);

		if (((j - wanted) & mask) < ((j - i) & mask))
			continue;
		table.slots[i] = table.slots[j];
		table.slots[j] = 0;
		i = j;
	}
}

void levels_python_mapped(uintptr_t address, size_t length, uintptr_t caller)
{
	size_t bytes = __atomic_load_n(&table.arena_bytes, __ATOMIC_ACQUIRE);
	uint64_t mask;

	if (!bytes || length != bytes || caller < table.low || caller >= table.high)
		return;
	mask = sys_block_signals();
	if (lock()) {
		if (make_room())
			insert(address);
		unlock();
	}
	sys_restore_signals(mask);
}

void levels_python_unmapped(uintptr_t address, size_t length)
{
	size_t bytes = __atomic_load_n(&table.arena_bytes, __ATOMIC_ACQUIRE);
	uint64_t mask;

	if (!bytes || length != bytes || !__atomic_load_n(&table.count, __ATOMIC_RELAXED))
		return;
	mask = sys_block_signals();
	if (lock()) {
		for (size_t i = slot_of(address); table.slots[i]; i = (i + 1) & (table.room - 1))
			if (table.slots[i] == address) {
				take_out(i);
				break;
			}
		unlock();
	}
	sys_restore_signals(mask);
}

/* ---- reading ---- */

bool levels_python_due(uint64_t now, uint64_t resident)
{
	uint64_t *own = &due[!resident], when = __atomic_load_n(own, __ATOMIC_RELAXED);

	if (!__atomic_load_n(&table.count, __ATOMIC_RELAXED) || now < when ||
	    (resident && resident < __atomic_load_n(&next_resident, __ATOMIC_RELAXED)) ||
	    !__atomic_compare_exchange_n(own, &when, now + tick_clock.ticks_100ms, false,
		__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return false;
	if (resident)
		__atomic_store_n(
		    &next_resident, resident + resident / 8 + GROWN_LEAST, __ATOMIC_RELAXED);
	return true;
}

/* Is this a pool's header? Then add it up. */
static bool add_pool(struct fill *sum, const struct pool *p)
{
	uint64_t size = (p->size_class + 1ull) * 16, touched;

	if (p->size_class == NO_CLASS || (!p->fresh && !p->used)) {
		sum->pools++; /* none of its blocks was ever handed out */
		return !p->used;
	}
	touched = p->fresh < table.pool_bytes ? p->fresh : table.pool_bytes;
	if (p->size_class >= CLASSES || p->used * size + sizeof(*p) > touched)
		return false;
	sum->pools++;
	sum->used += p->used * size + sizeof(*p);
	sum->touched += touched;
	return true;
}

/* Read the headers of the pools at `from`; pools that are gone are skipped. False: reading fails
 * altogether. */
static bool read_pools(struct fill *sum, unsigned count, uint32_t *odd)
{
	long pid = sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0);

	for (unsigned at = 0; at < count;) {
		struct iovec to = {scratch.pools, (count - at) * sizeof(struct pool)};
		long got = sys_call(SYS_process_vm_readv, pid, (long)&to, 1,
		    (long)(scratch.from + at), count - at, 0);
		unsigned whole = got > 0 ? (unsigned)got / sizeof(struct pool) : 0;

		if (got < 0 && got != -14 /* EFAULT */)
			return false;
		for (unsigned i = 0; i < whole; i++)
			*odd += !add_pool(sum, &scratch.pools[i]);
		at += whole + (whole < count - at);
	}
	return true;
}

/* Choose arenas to look into; *all: how many there are. Their order in the table is arbitrary. */
static unsigned choose(size_t *all)
{
	unsigned chosen = 0;
	uint64_t mask = sys_block_signals();

	*all = 0;
	if (lock()) {
		*all = table.count;
		for (size_t i = 0; i < table.room && chosen < PYTHON_PROBES; i++)
			if (table.slots[i])
				scratch.arenas[chosen++] = table.slots[i];
		unlock();
	}
	sys_restore_signals(mask);
	return chosen;
}

/* Read the same number of pools of each arena; if not all, begin with another one in each. */
static bool read_arenas(struct fill *sum, unsigned arenas, uint32_t *odd)
{
	size_t pool = table.pool_bytes, most = table.arena_bytes / pool;
	size_t each = PYTHON_PROBES / arenas < most ? PYTHON_PROBES / arenas : most;
	unsigned filled = 0;

	for (unsigned a = 0; a < arenas; a++) {
		uintptr_t first = (scratch.arenas[a] + pool - 1) & ~(pool - 1);
		size_t pools = (scratch.arenas[a] + table.arena_bytes - first) / pool;

		for (size_t k = 0; k < each; k++) {
			size_t n = (k * most / each + a * 37u) % most;

			if (n >= pools) {
				sum->cut++;
				continue;
			}
			scratch.from[filled++] =
			    (struct iovec){(void *)(first + n * pool), sizeof(struct pool)};
			if (filled == BATCH) {
				if (!read_pools(sum, filled, odd))
					return false;
				filled = 0;
			}
		}
	}
	return read_pools(sum, filled, odd);
}

unsigned levels_python_read(struct level *out)
{
	struct fill sum = {0};
	uint32_t odd = 0;
	unsigned arenas;
	size_t all;
	double scale;

	if (__atomic_exchange_n(&scratch.busy, true, __ATOMIC_ACQUIRE))
		return 0;
	arenas = choose(&all);
	if (arenas && !read_arenas(&sum, arenas, &odd))
		arenas = 0;
	__atomic_store_n(&scratch.busy, false, __ATOMIC_RELEASE);
	/* Memory that is not laid out like pools is not the interpreter's. */
	if (!arenas || !sum.pools || odd > sum.pools / 16)
		return 0;
	scale =
	    (double)(all * table.arena_bytes) / (double)((sum.pools + sum.cut) * table.pool_bytes);
	out[0] = (struct level){TRACE_LEVEL_PYTHON_ARENAS, all * table.arena_bytes};
	out[1] = (struct level){TRACE_LEVEL_PYTHON_USED, (uint64_t)((double)sum.used * scale)};
	out[2] = (struct level){
	    TRACE_LEVEL_PYTHON_FREE, (uint64_t)((double)(sum.touched - sum.used) * scale)};
	return LEVELS_PYTHON_MAX;
}
