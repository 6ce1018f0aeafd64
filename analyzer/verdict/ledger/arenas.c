/*
 * arenas.c - see arenas.h. The interpreter counts all arenas together, so each call site has the
 * same share of the free bytes. Later arenas were full: otherwise they would not have been needed.
 */
#include "verdict/ledger/arenas.h"

#include <string.h>

#include "util/num.h"
#include "util/tuned.h"

TUNED(uint64_t, SAME_FAILURE_NS, 200000000,
    "the interpreter's account of a failure is written with it, some milliseconds later");
TUNED(uint64_t, STEADY_PART, 2,
    "what was in use when there were half as many arenas is not what made them grow");

/* True if the interpreter made this mapping for its own allocator. A C extension may be on the
 * stack, too: it asked for an object. */
static bool is_arena(const struct model *m, const char *interpreter, const struct callsite *p)
{
	const struct symbol *symbols;
	bool by_interpreter = false;
	size_t count;

	if (!interpreter || !p->facts.map_bytes || !p->stack)
		return false;
	count = m->feed.symbols(m->feed.self, p->stack, &symbols);
	for (size_t i = count; i-- > 0;) {
		const char *module = symbols[i].module;

		if (symbols[i].python)
			return true;
		if (!module)
			continue;
		if (strcmp(module, interpreter) == 0 || strstr(module, "libpython"))
			by_interpreter = true;
		else if (!strstr(module, "libc."))
			return by_interpreter;
	}
	return false;
}

void arenas_mark(const struct model *m, struct callsites *callsites)
{
	uint64_t until =
	    callsites->moment_ns + (callsites->moment == AT_FAILURE ? SAME_FAILURE_NS : 0);
	const struct allocator_reading *a = allocator_stats_at(&m->measured.arenas, until);
	const char *interpreter = feed_interpreter(&m->feed);
	uint64_t bytes = 0;
	double unused = 0;

	for (uint32_t i = 0; i < callsites->count; i++) {
		struct callsite *p = &callsites->list[i];

		p->arena_share.any = is_arena(m, interpreter, p);
		bytes += p->arena_share.any ? p->facts.map_bytes : 0;
	}
	if (a && a->arena)
		unused = (double)a->free / (double)(bytes > a->arena ? bytes : a->arena);
	for (uint32_t i = 0; i < callsites->count; i++)
		callsites->list[i].arena_share.unused =
		    callsites->list[i].arena_share.any ? unused : 0;
}

uint64_t arenas_free_at(const struct model *m, uint64_t time_ns)
{
	const struct allocator_reading *a = allocator_stats_at(&m->measured.arenas, time_ns);

	return a ? a->free : 0;
}

uint64_t arenas_steady(const struct model *m, uint64_t time_ns)
{
	const struct allocator_reading *now = allocator_stats_at(&m->measured.arenas, time_ns);
	uint64_t before = 0;

	if (!now)
		return 0;
	for (const struct allocator_reading *a = m->measured.arenas.at; a < now; a++)
		if (a->arena <= now->arena / STEADY_PART && a->arena - a->free > before)
			before = a->arena - a->free;
	return num_least(before, now->arena - now->free);
}
