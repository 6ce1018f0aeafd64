/*
 * freed_stats.c - see freed_stats.h. The present period is added up in one of two tables. The other
 * one holds the period before and is cleared only when it is needed again: a thread that was in the
 * middle of adding to it is done by then.
 */
#include "checkpoint/freed_stats.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/sys.h"
#include "lifecycle.h"
#include "sampling/sampler.h"

#define SLOTS 2048u /* a power of two */
#define PROBES 16u
#define PAGE 4096u
#define PAGE_MAX 65536u
#define LIFETIME_UNIT 1024u /* ticks: keeps the sum of a period far from overflowing */

/* Whole pages, so that the child of a fork can give them back untouched. */
static struct {
	struct freed_stack table[2][SLOTS];
	struct freed_stack periods[TRACE_CHECKPOINT_PERIODS][FREED_STATS_STACKS];
	uint32_t count[TRACE_CHECKPOINT_PERIODS];
	uint32_t present; /* which table */
	uint64_t begun; /* ticks of freed_stats_period_begin() until commit or abort; else 0 */
	bool used;
} stats __attribute__((aligned(PAGE)));

uint32_t freed_stats_stacks_max(void)
{
	uint64_t most = options.max_trace / (256u << 10);

	return most > FREED_STATS_STACKS ? FREED_STATS_STACKS : most < 4 ? 4 : (uint32_t)most;
}

/* Returns the key's slot, claimed if need be; NULL: none is free. */
static struct freed_stack *slot_of(struct freed_stack *table, uint64_t key)
{
	uint32_t at = (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 40);

	for (uint32_t i = 0; i < PROBES; i++, at++) {
		struct freed_stack *g = &table[at % SLOTS];
		uint64_t there = __atomic_load_n(&g->key, __ATOMIC_RELAXED);

		if (there == key)
			return g;
		if (!there && (__atomic_compare_exchange_n(&g->key, &there, key, false,
				   __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
				  there == key))
			return g;
	}
	return NULL;
}

/* True also for a value as large as the maximum: of equal blocks the latest counts. */
static bool raise_to(uint64_t *most, uint64_t value)
{
	uint64_t was = __atomic_load_n(most, __ATOMIC_RELAXED);

	while (value >= was)
		if (__atomic_compare_exchange_n(
			most, &was, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return true;
	return false;
}

/* Adds blocks of a size that stand for `bytes` together. */
static void add(
    uint32_t table, uint64_t key, uint64_t size, uint64_t bytes, uint64_t birth, uint64_t release)
{
	struct freed_stack *g = (uint32_t)key ? slot_of(stats.table[table & 1], key) : NULL;
	uint64_t blocks = size ? bytes / size : 1;
	uint64_t lifetime = release > birth ? release - birth : 0;

	if (!g)
		return;
	if (!__atomic_load_n(&stats.used, __ATOMIC_RELAXED))
		__atomic_store_n(&stats.used, true, __ATOMIC_RELAXED);
	__atomic_fetch_add(&g->blocks, blocks, __ATOMIC_RELAXED);
	__atomic_fetch_add(&g->bytes, bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&g->lifetime, lifetime / LIFETIME_UNIT * blocks, __ATOMIC_RELAXED);
	raise_to(&g->longest_lifetime, lifetime);
	if (raise_to(&g->largest, size))
		__atomic_store_n(&g->birth, birth, __ATOMIC_RELAXED);
}

void freed_stats_add_host(const struct live_block *info)
{
	add(__atomic_load_n(&stats.present, __ATOMIC_RELAXED), info->stack, info->size,
	    sampler_stands_for(info->size, info->mean), info->birth, clock_ticks());
}

void freed_stats_add_space(
    uint32_t space, uint32_t stack, uint64_t size, uint64_t birth, uint64_t release)
{
	uint32_t table = __atomic_load_n(&stats.present, __ATOMIC_RELAXED);

	if (release <= __atomic_load_n(&stats.begun, __ATOMIC_RELAXED))
		table = !(table & 1); /* the period that has just ended */
	add(table, (uint64_t)space << 32 | stack, size, size, birth, release);
}

enum stack_choice { HOST = 1, BY_SIZE = 2 }; /* else: other spaces; by bytes */

/* Takes the top stack out of a list. */
static bool take_top(
    struct freed_stack *from, uint32_t count, enum stack_choice choice, struct freed_stack *out)
{
	bool host = choice & HOST, by_size = choice & BY_SIZE;
	struct freed_stack *first = NULL;

	for (uint32_t i = 0; i < count; i++) {
		struct freed_stack *g = &from[i];

		if (!(uint32_t)g->key || !(g->key >> 32) != host || !g->birth || !g->blocks)
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

/* Keeps the top stacks of a list, by turns of host and other spaces, of bytes and block size. The
 * list is used up. */
static void choose_stacks(struct freed_stack *from, uint32_t count, uint32_t to)
{
	static const uint8_t choices[4] = {HOST, 0, HOST | BY_SIZE, BY_SIZE};
	uint32_t most = freed_stats_stacks_max(), n = 0;

	while (n < most && (take_top(from, count, choices[n % 4], &stats.periods[to][n]) ||
			       take_top(from, count, choices[n % 4] ^ HOST, &stats.periods[to][n])))
		n++;
	stats.count[to] = n;
}

void freed_stats_period_begin(void)
{
	uint32_t next = !(stats.present & 1);

	memset(stats.table[next], 0, sizeof(stats.table[next]));
	__atomic_store_n(&stats.present, next, __ATOMIC_RELEASE);
	__atomic_store_n(&stats.begun, clock_ticks(), __ATOMIC_RELEASE);
}

void freed_stats_period_abort(void)
{
	__atomic_store_n(&stats.begun, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&stats.present, !(stats.present & 1), __ATOMIC_RELEASE);
}

void freed_stats_period_commit(uint32_t period, uint64_t end)
{
	__atomic_store_n(&stats.begun, 0, __ATOMIC_RELEASE);
	choose_stacks(stats.table[!(stats.present & 1)], SLOTS, period);
	for (uint32_t i = 0; i < stats.count[period]; i++) {
		struct freed_stack *g = &stats.periods[period][i];

		/* a thread took long to add it */
		if (g->birth > end)
			g->birth = end;
	}
}

void freed_stats_merge(uint32_t first, uint32_t second, uint32_t to)
{
	static struct freed_stack both[2 * FREED_STATS_STACKS]; /* not on the host's stack */
	uint32_t firsts = stats.count[first], n = firsts;

	memcpy(both, stats.periods[first], n * sizeof(both[0]));
	for (uint32_t i = 0; i < stats.count[second]; i++) {
		const struct freed_stack *g = &stats.periods[second][i];
		uint32_t k = 0;

		while (k < firsts && both[k].key != g->key)
			k++;
		if (k == firsts) {
			both[n++] = *g;
			continue;
		}
		both[k].blocks += g->blocks;
		both[k].bytes += g->bytes;
		both[k].lifetime += g->lifetime;
		both[k].longest_lifetime = both[k].longest_lifetime > g->longest_lifetime
					       ? both[k].longest_lifetime
					       : g->longest_lifetime;
		if (g->largest >= both[k].largest) {
			both[k].largest = g->largest;
			both[k].birth = g->birth;
		}
	}
	choose_stacks(both, n, to);
}

const struct freed_stack *freed_stats_period(uint32_t period, uint32_t *count)
{
	*count = stats.count[period];
	return stats.periods[period];
}

void freed_stats_forked(void)
{
	size_t whole = sizeof(stats) / PAGE_MAX * PAGE_MAX; /* never rounded up */

	if (!stats.used)
		return;
	if (shim.sandboxed ||
	    sys_failed(sys_call(SYS_madvise, (long)&stats, (long)whole, MADV_DONTNEED, 0, 0, 0)))
		memset(&stats, 0, sizeof(stats));
	else
		memset((char *)&stats + whole, 0, sizeof(stats) - whole);
}
