/*
 * freed_stats.c - see freed_stats.h. The present period's are added up in one of two tables; the
 * other one holds those of the period before, and is cleared when that is needed again: who was in
 * the middle of adding to it has ended by then.
 */
#include "checkpoint/freed_stats.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/shim_state.h"
#include "base/sys.h"
#include "sampling/sampler.h"

#define PLACES 2048u /* a power of two */
#define PROBES 16u
#define PAGE 4096u
#define PAGE_MOST 65536u
#define LIFE_UNIT 1024u /* ticks: the sum of a period is then far from overflowing */

/* Whole pages: a child of a fork gives them back untouched. */
static struct {
	struct gone table[2][PLACES];
	struct gone kept[TRACE_CHECKPOINT_PERIODS][FREED_STATS_STACKS];
	uint32_t count[TRACE_CHECKPOINT_PERIODS];
	uint32_t present; /* which table */
	uint64_t marked; /* ticks of freed_stats_period_begin(), while the other table is still
			    added to; 0 */
	bool used;
} all __attribute__((aligned(PAGE)));

uint32_t freed_stats_most(void)
{
	uint64_t most = options.max_trace / (256u << 10);

	return most > FREED_STATS_STACKS ? FREED_STATS_STACKS : most < 4 ? 4 : (uint32_t)most;
}

/* Whose place it is; NULL: none is free. */
static struct gone *place_of(struct gone *table, uint64_t who)
{
	uint32_t at = (uint32_t)(who * UINT64_C(0x9e3779b97f4a7c15) >> 40);

	for (uint32_t i = 0; i < PROBES; i++, at++) {
		struct gone *g = &table[at % PLACES];
		uint64_t there = __atomic_load_n(&g->who, __ATOMIC_RELAXED);

		if (there == who)
			return g;
		if (!there && (__atomic_compare_exchange_n(&g->who, &there, who, false,
				   __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
				  there == who))
			return g;
	}
	return NULL;
}

/* The latest of those that are as large is the one. */
static bool raise_to(uint64_t *most, uint64_t value)
{
	uint64_t was = __atomic_load_n(most, __ATOMIC_RELAXED);

	while (value >= was)
		if (__atomic_compare_exchange_n(
			most, &was, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return true;
	return false;
}

/* So many of a size, that stand for `bytes`. */
static void add(
    uint32_t table, uint64_t who, uint64_t size, uint64_t bytes, uint64_t birth, uint64_t release)
{
	struct gone *g = (uint32_t)who ? place_of(all.table[table & 1], who) : NULL;
	uint64_t blocks = size ? bytes / size : 1;
	uint64_t life = release > birth ? release - birth : 0;

	if (!g)
		return;
	if (!__atomic_load_n(&all.used, __ATOMIC_RELAXED))
		__atomic_store_n(&all.used, true, __ATOMIC_RELAXED);
	__atomic_fetch_add(&g->blocks, blocks, __ATOMIC_RELAXED);
	__atomic_fetch_add(&g->bytes, bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&g->life, life / LIFE_UNIT * blocks, __ATOMIC_RELAXED);
	raise_to(&g->longest, life);
	if (raise_to(&g->largest, size))
		__atomic_store_n(&g->birth, birth, __ATOMIC_RELAXED);
}

void freed_stats_note(const struct live_block *how)
{
	add(__atomic_load_n(&all.present, __ATOMIC_RELAXED), how->stack, how->size,
	    sampler_stands_for(how->size, how->mean), how->birth, clock_ticks());
}

void freed_stats_note_of(
    uint32_t space, uint32_t stack, uint64_t size, uint64_t birth, uint64_t release)
{
	uint32_t table = __atomic_load_n(&all.present, __ATOMIC_RELAXED);

	if (release <= __atomic_load_n(&all.marked, __ATOMIC_RELAXED))
		table = !(table & 1); /* of the period that is being summed up */
	add(table, (uint64_t)space << 32 | stack, size, size, birth, release);
}

/* Takes the first by bytes, or by size, out of a list: of the host's, or of others. */
static bool take_first(struct gone *from, uint32_t count, bool host, bool by_size, struct gone *out)
{
	struct gone *first = NULL;

	for (uint32_t i = 0; i < count; i++) {
		struct gone *g = &from[i];

		if (!(uint32_t)g->who || !(g->who >> 32) != host || !g->birth || !g->blocks)
			continue;
		if (!first || (by_size ? g->largest > first->largest : g->bytes > first->bytes))
			first = g;
	}
	if (!first)
		return false;
	*out = *first;
	first->birth = 0;
	return true;
}

/* Those of a list that tell most. The list is used up. */
static void choose(struct gone *from, uint32_t count, uint32_t to)
{
	uint32_t most = freed_stats_most(), n = 0;

	while (n < most && (take_first(from, count, !(n & 1), n & 2, &all.kept[to][n]) ||
			       take_first(from, count, n & 1, n & 2, &all.kept[to][n])))
		n++;
	all.count[to] = n;
}

void freed_stats_period_begin(void)
{
	uint32_t next = !(all.present & 1);

	memset(all.table[next], 0, sizeof(all.table[next]));
	__atomic_store_n(&all.present, next, __ATOMIC_RELEASE);
	__atomic_store_n(&all.marked, clock_ticks(), __ATOMIC_RELEASE);
}

void freed_stats_period_abort(void)
{
	__atomic_store_n(&all.marked, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&all.present, !(all.present & 1), __ATOMIC_RELEASE);
}

void freed_stats_period_commit(uint32_t period, uint64_t end)
{
	__atomic_store_n(&all.marked, 0, __ATOMIC_RELEASE);
	choose(all.table[!(all.present & 1)], PLACES, period);
	for (uint32_t i = 0; i < all.count[period]; i++) {
		struct gone *g = &all.kept[period][i];

		/* of somebody who took long to add it */
		if (g->birth > end)
			g->birth = end;
	}
}

void freed_stats_merge(uint32_t first, uint32_t second, uint32_t to)
{
	static struct gone both[2 * FREED_STATS_STACKS]; /* not on the host's stack */
	uint32_t firsts = all.count[first], n = firsts;

	memcpy(both, all.kept[first], n * sizeof(both[0]));
	for (uint32_t i = 0; i < all.count[second]; i++) {
		const struct gone *g = &all.kept[second][i];
		uint32_t k = 0;

		while (k < firsts && both[k].who != g->who)
			k++;
		if (k == firsts) {
			both[n++] = *g;
			continue;
		}
		both[k].blocks += g->blocks;
		both[k].bytes += g->bytes;
		both[k].life += g->life;
		both[k].longest = both[k].longest > g->longest ? both[k].longest : g->longest;
		if (g->largest >= both[k].largest) {
			both[k].largest = g->largest;
			both[k].birth = g->birth;
		}
	}
	choose(both, n, to);
}

const struct gone *freed_stats_of(uint32_t period, uint32_t *count)
{
	*count = all.count[period];
	return all.kept[period];
}

void freed_stats_forked(void)
{
	size_t whole = sizeof(all) / PAGE_MOST * PAGE_MOST; /* never rounded up */

	if (!all.used)
		return;
	if (shim.sandboxed ||
	    sys_failed(sys_call(SYS_madvise, (long)&all, (long)whole, MADV_DONTNEED, 0, 0, 0)))
		memset(&all, 0, sizeof(all));
	else
		memset((char *)&all + whole, 0, sizeof(all) - whole);
}
