/*
 * callsite.h - stacks grouped by the line that a person would blame. A full stack is too fine:
 * growth by two ways has one cause. If the line leaves the choice to a framework, each part of the
 * framework is a call site of its own. Each call site has sums, its history in steps, and the
 * results of this folder's modules, which read the history.
 *
 * Made after the pass over the events, for one moment. Memory grows with the number of call sites.
 * Strings belong to the feed.
 */
#ifndef ANALYZER_MODEL_CALLSITE_H
#define ANALYZER_MODEL_CALLSITE_H

#include "model/callsite/blame.h"
#include "model/callsite/open_call.h"
#include "model/callsite/proportion.h"
#include "model/model.h"
#include "util/arena.h"
#include "util/text/str.h"

#define CALLSITE_NONE UINT32_MAX

/* A stack of a call site, as it was at the moment. */
struct callsite_member {
	uint32_t callsite;
	const struct stack_stats *at;
};
/* Return the stack with most live bytes; NULL: none. */
const struct stack_stats *callsite_heaviest(const struct callsite_member *members, size_t count);

/* Consecutive acquisitions at a call site, merged from the cohorts of its stacks. */
struct step {
	uint64_t serial; /* of the first acquisition */
	uint64_t time_ns, last_ns;
	uint64_t count, bytes, max, min;
	uint64_t freed_count, freed_bytes; /* part of these, freed until the moment */
	uint64_t summed_count, summed_bytes; /* part of these, from a checkpoint's sums */
};

/* The sums over its stacks, until and at the moment. Filled by callsite.c, const for all others. */
struct callsite_facts {
	uint64_t live_bytes, live_count;
	double live_variance; /* of live_bytes, if they are estimated from a sample */
	uint64_t peak_bytes; /* at the process's high-water mark */
	uint64_t total_bytes, total_count, largest;
	/* Parts of live_bytes: mappings; of these, shared memory, and files if charged. */
	uint64_t map_bytes, shared_bytes, file_bytes;
	/* part of live_bytes: of stacks with all blocks as large as the heaviest one's */
	uint64_t alike_bytes, alike_size;
	uint64_t imported_bytes; /* part of live_bytes: allocated during a module's import */
	uint64_t freed_count, life_ns, longest_life_ns;
	uint64_t moved_count; /* part of freed_count: realloc() moved them */
	uint64_t regrown;
	uint64_t first_ns, last_ns; /* first and last acquisition until the moment */
	const struct step *steps; /* CALLSITE_STEPS at most */
	uint32_t step_count;
};

/* True if the call site holds the interpreter's arenas, and the free share of all arenas. Filled by
 * arenas_mark(), const for all others. */
struct arena_share {
	bool any;
	double unused;
};

/* The sizes of its blocks, in order of occurrence: the largest of each step. A line may make
 * several kinds of blocks (a string, and the list that it was joined from), so this is the history
 * of the stack that grows most, or else of the whole call site. Filled by sizes.c. */
#define CALLSITE_STEPS STACK_STATS_COHORTS
struct size_at {
	uint64_t time_ns;
	double size;
};
struct callsite_sizes {
	struct size_at at[CALLSITE_STEPS];
	uint32_t count;
	uint64_t live_bytes; /* of the stacks with this history */
	uint64_t start; /* of the very first step */
	uint64_t first, last; /* typical of the first eighth and the last quarter */
	double tau, tau_late; /* of all, of the second half */
	struct stack_stats_run run; /* of the stack with most live bytes */
	bool grows; /* larger from step to step, until the moment */
	bool geometric; /* by a factor, as a container's capacity */
	uint64_t grown_bytes; /* live bytes beyond as many blocks of size `first` */
};

/* The blocks that remain: their number and their generations. Filled by survivors.c. */
struct survivors {
	uint64_t count, bytes;
	double even; /* share of the history's eighths that kept about as many as the others */
	/* share of bytes born in the last third of time, or of the process's work if larger */
	double late;
	uint64_t before; /* bytes born in the first eighth */
	bool stays; /* each generation leaves survivors, until the moment */
};

/* Blocks that wait in a queue: released one by one in the order of their allocation, each after a
 * longer wait than those before it, because the consumer is slower than the producer. Filled by
 * backlog.c. */
struct backlog {
	bool grows;
	uint64_t count, bytes; /* waiting at the moment */
	uint64_t served; /* released before */
	uint64_t wait_ns; /* wait of the latest released block */
};

/* Blocks that build up and are then all released, again and again, before a far larger build-up
 * that stays. Filled by backlog.c. */
struct buildup {
	uint64_t bytes; /* of the current one, if it is far larger than all before; else 0 */
	uint64_t since_ns; /* its begin */
	uint64_t times; /* number of build-ups before */
	uint64_t largest; /* bytes of the largest one before */
	/* They grow from one to the next, until the moment: bytes of the current one, of the first
	 * one, and how many were larger than all before. */
	bool grows;
	uint64_t now, first, records;
};

/* Which call site's blocks follow from another one's kept blocks. Indices of other call sites;
 * CALLSITE_NONE: none. Filled by relations.c. */
struct relations {
	/* The call site whose blocks grow in proportion to this one's kept bytes, and its bytes for
	 * each byte kept. */
	uint32_t feeds;
	double feed_slope;
	/* The call site that repeatedly makes a list of all blocks that this one keeps: they are
	 * read at every step, so they are no finished work. */
	uint32_t listed_by;
	/* The call site that holds the original of this one's kept copies: each copy is as large as
	 * everything held there at the time, or consists of a fixed number of blocks for each block
	 * added there. */
	uint32_t copies_of;
	/* For a growing call site: it is the index (array, table) of that one's kept blocks. A call
	 * site that makes both is its own. */
	uint32_t index_of;
};

/* The tables that hold its kept blocks: hash tables or arrays that were enlarged by a factor
 * whenever the number of kept blocks had grown by that factor. A table's stack shows the code that
 * keeps the blocks; the blocks' stacks show only the code that made them. Filled by holders.c. */
#define CALLSITE_TABLES 4u
struct holders {
	/* Stacks of tables that grew with the number of kept blocks: likely their holders. */
	uint32_t tables[CALLSITE_TABLES];
	uint32_t table_count;
	/* All of these tables are filled by a runtime function that also calls the maker of the
	 * entries: a function that remembers its results. */
	bool remembered;
};

/* A line to blame (from callsite.c), and the parts above, each const for all but the file
 * that fills it. */
struct callsite {
	const char *function, *file; /* file NULL, line 0: unknown */
	uint32_t line;
	/* The framework's function that made it for the line, if the line runs several: then it has
	 * a call site for each. NULL: one call site. */
	const char *part, *part_file;
	bool python;
	enum owner owner;
	uint32_t stack; /* the one with most live bytes */

	struct callsite_facts facts;
	struct arena_share arena_share;
	struct callsite_sizes size;
	struct survivors survivors;
	struct backlog backlog;
	struct buildup buildup;
	struct relations relations;
	struct holders holders;
	struct call_state call;
};

struct callsites {
	struct callsite *list;
	uint32_t count;
	uint16_t *of[STACK_STATS_KINDS]; /* by stack: 1 + index; 0: see callsites_of_stack() */
	uint32_t limits[STACK_STATS_KINDS]; /* of these tables */
	uint32_t stack_limit; /* above the number of each stack with an acquisition */
	enum moment moment;
	uint64_t moment_ns, moment_serial;
	uint64_t replaced_until_ns; /* result of replaced_until_ns() */
	const struct replaced *replaced; /* the model's */
	struct arena steps; /* the call sites' */
	uint64_t first_ns; /* of the process's events */
	struct blame_context context; /* its strings are the feed's */
	struct blame_memory memory; /* the context's */
	uint32_t failed; /* the call site of the refused request, or CALLSITE_NONE */
	bool failed_import; /* an import made the refused request */
	/* The newest acquisition by an import, and by any other code of the user's; 0: none. */
	uint64_t imported_ns, own_ns;
	/* Everything live at the moment, including stacks that are too small for a call site. */
	uint64_t live_bytes, map_bytes;
	uint64_t shared_bytes, file_bytes; /* parts of map_bytes */
	uint64_t live_blocks; /* of the heap's part of live_bytes */
	enum files_charged files_charged; /* the model's */
	struct proportion_found proportion;
	/* By call site, for a report's pictures: 1 + the class of the ledger that it was put in; 0:
	 * none. Filled by verdict/ledger/classes.c. */
	uint8_t *classes;
};

int callsites_new(
    const struct model *m, enum moment moment, struct callsites **out, struct err *err);
/* The same at the end of a space's model, which keeps no failures of its own: `refused` is the
 * request that ended it. */
int callsites_refused(
    const struct model *m, const struct failure *refused, struct callsites **out, struct err *err);
void callsites_free(struct callsites *p); /* accepts NULL */

/* Return an index into the list; CALLSITE_NONE: no call site, or too small to matter. */
static inline uint32_t callsites_of_stack(
    const struct callsites *p, enum stack_stats_kind kind, uint32_t stack)
{
	uint16_t at = stack < p->limits[kind] ? p->of[kind][stack] : 0;

	return at ? at - 1u : CALLSITE_NONE;
}

/* The same for a mapping of the program's own, private or shared. */
static inline uint32_t callsites_of_mapping(const struct callsites *p, uint32_t stack)
{
	uint32_t callsite = callsites_of_stack(p, STACK_STATS_MAP, stack);

	return callsite == CALLSITE_NONE ? callsites_of_stack(p, STACK_STATS_SHARED, stack)
					 : callsite;
}

static inline bool callsites_made_at(const struct callsites *p, uint32_t callsite, uint32_t stack)
{
	return callsites_of_stack(p, STACK_STATS_HEAP, stack) == callsite ||
	       callsites_of_stack(p, STACK_STATS_MAP, stack) == callsite ||
	       callsites_of_stack(p, STACK_STATS_SHARED, stack) == callsite ||
	       callsites_of_stack(p, STACK_STATS_FILE, stack) == callsite ||
	       callsites_of_stack(p, STACK_STATS_COPY, stack) == callsite;
}

/* True when most of it is mapped files, which were read and not made. */
static inline bool callsite_is_mapped_files(const struct callsite *p)
{
	return p->facts.file_bytes > p->facts.live_bytes / 2;
}

/* Return the free bytes inside its mappings, by the interpreter's statistics of its arenas. */
uint64_t callsite_unused(const struct callsite *callsite);

/* True if `count` blocks of `live` bytes in all, the largest of `largest`, have one size: they
 * differ by headers, or a small remainder is beside them. */
bool callsite_blocks_alike(uint64_t largest, uint64_t count, uint64_t live);
/* True when all of its live blocks have one size, except a few small ones. */
bool callsite_is_uniform(const struct callsite *callsite);

/* Return how many blocks of the largest size make up the live bytes. An array's header, allocated
 * on the same line, does not count. */
static inline uint64_t callsite_large_blocks(const struct callsite *callsite)
{
	return callsite->facts.largest
		   ? (callsite->facts.live_bytes + callsite->facts.largest / 2) /
			 callsite->facts.largest
		   : 0;
}

/* Return the largest block that surely lives: at least as many bytes of its step survive. */
uint64_t callsite_largest_live(const struct callsite *callsite);

/* True when most of it is code and data of imported modules. */
bool callsite_is_import(const struct callsite *callsite);

/* True when it frees its blocks as soon as the work is done: no survivor is older than the oldest
 * freed block was. */
bool callsite_is_working_set(const struct callsite *callsite, uint64_t moment_ns);

/* True when it makes both a table that grows by a factor, and the table's entries. */
static inline bool callsite_indexes_itself(const struct callsite *c)
{
	return c->size.grows && c->size.geometric && c->survivors.stays &&
	       c->size.live_bytes <= c->facts.live_bytes / 2;
}

/* Return the bytes, or blocks, born until `time_ns` that still lived at the moment (survivors.c). A
 * step that crosses that time counts in proportion. */
double survivors_bytes_until(const struct callsite *c, uint64_t time_ns);
double survivors_count_until(const struct callsite *c, uint64_t time_ns);
typedef double (*survivors_until_t)(const struct callsite *c, uint64_t time_ns);

static inline bool callsite_is_line(const struct callsite *p, const struct symbol *symbol)
{
	return symbol->line == p->line && str_same(symbol->function, p->function) &&
	       str_same(symbol->file, p->file);
}

#endif
