/* holders.c - finds the tables that hold kept blocks. */
#include "model/callsite/callsite_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "model/callsite/trend.h"
#include "util/text/str.h"
#include "util/tuned.h"

TUNED(unsigned, ENLARGED_MIN, 3u, "two enlargements follow a count by chance");
TUNED(unsigned, RIVAL_MIN, 2u, "a table that was enlarged once tells no factor");
TUNED(double, SPREAD_MOST, 3.0,
    "bytes an entry stay within the factor of an enlargement, which is at most 2, and rounding");
TUNED(double, KEPT_MIN, 4.0, "a table has room for some entries before the first is kept");
TUNED(double, KEPT_STEPS, 2.0, "what was kept at a time is known to one step, on both sides");
TUNED(double, FULL_TIMES, 4.0, "a hash table has room for three times as many when it is enlarged");
TUNED(unsigned, HELD_PART, 16u, "of a smaller call site it does not matter what holds it");
TUNED(double, HASH_FACTOR, 1.7, "a hash table doubles; an array adds an eighth or a half");
TUNED(unsigned, FUNCTION_BYTES, 1024u,
    "two returns into one function without a name are not further apart");
TUNED(unsigned, ALLOCATOR_PART, 8u, "a stack of a smaller part does not say how the blocks came");

struct table {
	const struct stack_stats *at;
	bool geometric, hash;
	bool remembers; /* its owner also calls the maker of its entries */
};

/* True when each block replaced the one before and is larger. */
static bool is_table(const struct stack_stats *s, struct table *out)
{
	double sizes[STACK_STATS_COHORTS];
	struct stack_stats_more view;
	const struct stack_stats_more *all = stack_stats_view(s, &view);

	if (all->used < RIVAL_MIN || all->stride != 1 || all->live_count != 1)
		return false;
	for (uint32_t i = 0; i < all->used; i++) {
		struct cohort own;
		const struct cohort *c = stack_stats_cohort(s, i, &own);

		if (c->count != 1 || (c->freed_count == 1) != (i + 1 < all->used))
			return false;
		sizes[i] = (double)c->max;
		if (i && sizes[i] <= sizes[i - 1])
			return false;
	}
	out->at = s;
	out->hash = sizes[all->used - 1] >= sizes[0] * pow(HASH_FACTOR, all->used - 1);
	out->geometric = trend_geometric(sizes, all->used);
	return true;
}

enum holds {
	HOLDS_NOT,
	HOLDS_PERHAPS,
	HOLDS,
};

/* Was the table enlarged as the call site's kept blocks grew? `kept_until`: what it kept until a
 * time; `all`: all that it keeps. */
static enum holds holds_by(const struct table *t, const struct callsite *keeper,
    survivors_until_t kept_until, double all, double least_kept)
{
	double least = 0, most = 0, kept = 0;
	double enough = fmax(least_kept, KEPT_STEPS * all / keeper->facts.step_count);
	uint32_t n = 0;

	for (uint32_t i = 0, used = stack_stats_used(t->at); i < used; i++) {
		struct cohort own;
		const struct cohort *c = stack_stats_cohort(t->at, i, &own);
		double each;

		kept = kept_until(keeper, c->time_ns);
		if (kept < enough)
			continue;
		each = (double)c->max / kept;
		if (!n || each < least)
			least = each;
		if (each > most)
			most = each;
		n++;
	}
	/* A table with room for all later blocks holds something else. */
	if (n < RIVAL_MIN || all > FULL_TIMES * kept || most > SPREAD_MOST * least)
		return HOLDS_NOT;
	return n >= ENLARGED_MIN && t->geometric ? HOLDS : HOLDS_PERHAPS;
}

/* By the number of blocks; or by bytes, if the interpreter's arenas are among them: once it gets no
 * more arenas, each small object is a block of its own, and thousands of them weigh next to
 * nothing. */
static enum holds holds(const struct table *t, const struct callsite *keeper)
{
	double count = (double)keeper->survivors.count, bytes = (double)keeper->survivors.bytes;
	enum holds by_count = holds_by(t, keeper, survivors_count_until, count, KEPT_MIN), by_bytes;

	if (by_count == HOLDS || !keeper->facts.map_bytes)
		return by_count;
	by_bytes = holds_by(
	    t, keeper, survivors_bytes_until, bytes, KEPT_MIN * (double)keeper->facts.largest);
	return by_bytes > by_count ? by_bytes : by_count;
}

/* True for two return addresses in one function of the runtime that has no name. */
static bool same_nameless(
    const struct blame_context *context, const struct symbol *a, const struct symbol *b)
{
	uint64_t low = a->address < b->address ? a->address : b->address;

	return !a->python && !b->python && !a->known && !b->known &&
	       str_same(a->module, b->module) && a->module &&
	       a->address + b->address - 2 * low <= FUNCTION_BYTES &&
	       blame_owner(context, a) == OWNER_RUNTIME;
}

static bool has_python(const struct symbol *symbols, size_t from, size_t count)
{
	while (from < count && !symbols[from].python)
		from++;
	return from < count;
}

/* True for a function that remembers its results, as functools.cache does: a runtime function,
 * called from one line, calls the maker of the kept blocks, and enlarges the table itself. If the
 * runtime's functions have names, the knowledge files know it. */
static bool remembers(const struct feed *feed, const struct callsites *p, const struct table *t,
    const struct callsite *k)
{
	const struct symbol *maker, *filler;
	size_t makers = feed->symbols(feed->self, k->stack, &maker);
	size_t fillers = feed->symbols(feed->self, t->at->stack, &filler), n = 0;

	while (n < makers && n < fillers && symbol_same_line(&maker[n], &filler[n]))
		n++;
	return t->hash && n && n < makers && n < fillers && has_python(maker, 0, n) &&
	       same_nameless(&p->context, &maker[n], &filler[n]) && has_python(maker, n, makers) &&
	       !has_python(filler, n, fillers);
}

/* True for an allocator's index: a runtime function on the blocks' stacks enlarged it. */
static bool is_allocators(
    const struct feed *feed, const struct callsites *p, const struct table *t, uint32_t stack)
{
	const struct symbol *maker, *filler;
	size_t makers = feed->symbols(feed->self, stack, &maker);
	size_t fillers = feed->symbols(feed->self, t->at->stack, &filler);

	if (!fillers-- || blame_owner(&p->context, &filler[fillers]) != OWNER_RUNTIME)
		return false;
	while (makers-- > 0 && blame_owner(&p->context, &maker[makers]) == OWNER_RUNTIME &&
	       !maker[makers].python)
		if (symbol_same_function(&maker[makers], &filler[fillers]) ||
		    same_nameless(&p->context, &maker[makers], &filler[fillers]))
			return true;
	return false;
}

/* The same for much of the call site's kept bytes. */
static bool is_of_allocator(const struct feed *feed, const struct callsites *p,
    const struct table *t, const struct callsite_member *members, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (stack_stats_live_bytes(members[i].at) >=
			p->list[members[i].callsite].survivors.bytes / ALLOCATOR_PART &&
		    is_allocators(feed, p, t, members[i].at->stack))
			return true;
	return false;
}

static bool matters(const struct callsites *p, const struct callsite *k)
{
	return k->survivors.stays && k->stack &&
	       k->survivors.bytes >= (p->live_bytes + p->map_bytes) / HELD_PART;
}

/* All tables of the process. */
struct tables {
	const struct feed *feed;
	const struct callsites *callsites;
	const struct table *list;
	size_t count;
};

static void find_holders(const struct tables *t, const struct callsite *c,
    const struct callsite_member *members, size_t member_count, struct holders *out)
{
	bool all = true, sure = false;
	uint32_t n = 0;

	for (size_t i = 0; i < t->count; i++) {
		const struct table *table = &t->list[i];
		enum holds how = holds(table, c);

		if (how == HOLDS_NOT ||
		    is_of_allocator(t->feed, t->callsites, table, members, member_count))
			continue;
		sure |= how == HOLDS;
		all &= table->remembers;
		if (n < CALLSITE_TABLES)
			out->tables[n] = table->at->stack;
		n++;
	}
	/* Too many: which one holds the blocks is unknown. */
	if (!sure || n > CALLSITE_TABLES)
		return;
	out->table_count = n;
	out->remembered = all;
}

/* Members are sorted by call site; their stacks lie anywhere. */
#define ASK_AHEAD 8u

static inline void ask_ahead(const struct callsite_member *members, size_t number, size_t count)
{
	if (number + 2 * ASK_AHEAD < count)
		__builtin_prefetch(members[number + 2 * ASK_AHEAD].at);
	if (number + ASK_AHEAD < count)
		stack_stats_ask(members[number + ASK_AHEAD].at);
}

int holders_read(const struct feed *feed, struct callsites *p,
    const struct callsite_member *members, size_t count)
{
	struct table *tables = malloc((count + 1) * sizeof(*tables));
	size_t n = 0;

	if (!tables)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		ask_ahead(members, i, count);
		tables[n] = (struct table){0};
		n += members[i].at->stack && is_table(members[i].at, &tables[n]);
	}
	for (uint32_t i = 0; i < p->count; i++)
		for (size_t t = 0; t < n && matters(p, &p->list[i]); t++)
			tables[t].remembers |= holds(&tables[t], &p->list[i]) == HOLDS &&
					       remembers(feed, p, &tables[t], &p->list[i]);
	for (size_t i = 0, end; i < count; i = end) {
		struct callsite *callsite = &p->list[members[i].callsite];

		for (end = i; end < count && members[end].callsite == members[i].callsite; end++)
			;
		if (matters(p, callsite))
			find_holders(&(struct tables){feed, p, tables, n}, callsite, members + i,
			    end - i, &callsite->holders);
	}
	free(tables);
	return 0;
}
