/*
 * callsite.h - sites by the line that a person would blame, and where that line leaves it to a
 * framework by the part of it: a full stack is too fine, since the same growth reached by two ways
 * is one cause. For each place its history in steps, and what that history shows: do its blocks
 * grow, do they stay, does one follow from the other.
 *
 * Made after the pass, at one moment. Memory grows with places; words belong to the feed.
 */
#ifndef ANALYZER_MODEL_CALLSITE_H
#define ANALYZER_MODEL_CALLSITE_H

#include "model/callsite/blame.h"
#include "model/model.h"
#include "util/arena.h"
#include "util/text/str.h"

#define CALLSITE_STEPS STACK_STATS_COHORTS
#define CALLSITE_TABLES 4u
#define CALLSITE_NONE UINT32_MAX

enum open_call {
	OPEN_CALL_NO, /* it was left while the place grew, or is the program's outermost function */
	OPEN_CALL_MAYBE, /* it was not seen to be left, but a loop around it would not be seen */
	OPEN_CALL_YES,
};

/* Consecutive acquisitions at a place. */
struct step {
	uint64_t serial; /* of the first */
	uint64_t time_ns, last_ns;
	uint64_t count, bytes, max, min;
	uint64_t freed_count, freed_bytes; /* of these, until the moment */
	uint64_t went_count, went_bytes; /* of these, what a checkpoint tells as a sum */
};

struct callsite {
	const char *function, *file; /* file NULL, line 0: unknown */
	uint32_t line;
	/* The framework's function that the line had made it, where it runs several of them: then
	 * it has a place for each. NULL: it has one. */
	const char *part, *part_file;
	bool python;
	enum owner owner;
	uint32_t stack; /* the one that holds most */

	uint64_t live_bytes, live_count; /* at the moment */
	double live_variance; /* of live_bytes, as far as they are estimated from a sample */
	uint64_t peak_bytes; /* at the process' high-water mark */
	uint64_t end_bytes; /* after the last event */
	uint64_t total_bytes, total_count, largest;
	/* Of live_bytes: mappings; of these: shared memory, and files where they are charged. */
	uint64_t map_bytes, shared_bytes, file_bytes;
	/* These are arenas of the interpreter, of which it has this share free: set by who knows.
	 */
	bool arenas;
	double unused;
	/* of live_bytes: of stacks whose blocks are all as large as those of the heaviest one */
	uint64_t alike_bytes, alike_size;
	uint64_t imported_bytes; /* of live_bytes: made while a module was imported */
	uint64_t freed_count, life_ns, longest_life_ns;
	uint64_t regrown;
	uint64_t first_ns, last_ns; /* first and last acquisition until the moment */

	const struct step *steps; /* CALLSITE_STEPS at most */
	uint32_t step_count;
	uint64_t grown_bytes; /* live beyond what as many blocks of size.first would hold */

	/* The sizes of its blocks, by order of occurrence: the largest of each step. A line may
	 * make blocks of several kinds (a string, and the list it was joined from), so this is the
	 * history of that one of its stacks that grows most, or else of the whole place. */
	struct {
		struct size_at {
			uint64_t time_ns;
			double size;
		} at[CALLSITE_STEPS];
		uint32_t count;
		uint64_t live_bytes; /* of the stacks whose history this is */
		uint64_t start; /* of the very first step */
		uint64_t first, last; /* typical of the first eighth and the last quarter */
		double tau, tau_late; /* of all, of the second half */
		bool grows; /* larger from step to step, until the moment */
		bool geometric; /* by a factor, as a container's capacity */
	} size;

	/* What remains of them. */
	struct {
		uint64_t count, bytes; /* survivors at the moment */
		double even; /* share of the history's eighths that kept as many as the others */
		double late; /* share of survivors' bytes born in the last third of the time,
				or of the process' work, whichever says more */
		uint64_t before; /* bytes of survivors born in the first eighth */
		bool stays; /* each generation leaves survivors, until the moment */
	} keep;

	/* They wait for their turn: given back one by one in the order in which they were made,
	 * each after a longer wait than those before it, by somebody slower than who makes them. */
	struct {
		bool grows;
		uint64_t count, bytes; /* that wait at the moment */
		uint64_t served,
		    wait_ns; /* given back before; how long the latest of them waited */
	} backlog;

	/* Piles were made there and given back, and then a far larger one of which nearly nothing
	 * was: its bytes, since when it is there, and how many there were before; the largest of
	 * those, whether there is one now or not. */
	struct {
		uint64_t bytes, since_ns, times, largest;
		/* The piles get larger from one to the next, until the moment: the present one's
		 * bytes, the first one's, and how many were larger than all before. */
		bool grows;
		uint64_t now, first, records;
	} pile;

	/* The place whose blocks grow in proportion to what this one keeps, and by how many bytes
	 * for each byte kept; CALLSITE_NONE: there is none. */
	uint32_t feeds;
	double feed_slope;
	/* The place that makes, time and again, a list of all that this one keeps: it is gone
	 * through at every step, so it is no finished work. CALLSITE_NONE: there is none. */
	uint32_t listed_by;
	/* The place that holds what this one's kept blocks are copies of: each of them is as large
	 * as all that was held there at the time, or so many came to be with each block that was
	 * added there. CALLSITE_NONE: there is none. */
	uint32_t copies_of;
	/* Stacks of the tables (hash tables, arrays) that grew as the number of its kept blocks
	 * did: what holds them, most likely; see tables.h. */
	uint32_t tables[CALLSITE_TABLES];
	uint32_t table_count;
	/* All of these are filled by code of the runtime that also calls for what it puts there: a
	 * function that remembers its results. */
	bool remembered;
	/* All that it keeps came to be while one call was open; set by open_call.h, and taken
	 * back where several requests hold it alike. */
	enum open_call open_call;
	const struct symbol *open_of; /* its function, where that is known: the feed's */
	/* Calls of that kind had ended before, and left nothing: it works at a request, and puts
	 * nothing in place for good. */
	bool open_repeats;
	uint64_t calls_before; /* that had ended, of the same way in */
	/* For a growing place: it is the index (array, table) of what that place keeps. One that
	 * makes both is its own. */
	uint32_t index_of;
};

/* The blocks of `place` follow what was made before each of them; see proportion.h. */
struct proportion_found {
	uint32_t callsite, driver; /* CALLSITE_NONE: there are none */
	uint64_t target, input; /* the one out of the ordinary, and what was made for it */
	uint64_t typical; /* of those before */
	uint64_t pairs;
	double fit, slope; /* of logarithms: slope 1 is proportional, 2 its square */
	/* Both are made again and again in the same sizes before they change: layer by layer. */
	bool layered;
};

struct callsites {
	struct callsite *list;
	uint32_t count;
	uint16_t *of[STACK_STATS_KINDS]; /* by stack, plus 1; 0: see callsites_of_stack() */
	uint32_t limits[STACK_STATS_KINDS]; /* of these tables */
	uint32_t stack_limit; /* no stack that acquired anything has this number, or a higher one */
	enum moment moment;
	uint64_t moment_ns, moment_serial;
	uint64_t past_ns; /* as past_until_ns() */
	const struct past *past; /* the model's */
	struct arena steps; /* the places' */
	uint64_t first_ns; /* of the process' events */
	struct blame_context context; /* words are the feed's */
	struct blame_memory memory; /* the context's */
	uint32_t failed; /* the place of the refused request, or CALLSITE_NONE */
	bool failed_import; /* it was made while a module was imported */
	/* The newest acquisition by an import, and by anything else in code of one's own; 0: none.
	 */
	uint64_t imported_ns, own_ns;
	/* Everything at the moment, also what is too small for a place. */
	uint64_t live_bytes, map_bytes;
	uint64_t shared_bytes, file_bytes; /* of map_bytes */
	uint64_t live_blocks; /* of the heap: of live_bytes */
	enum files_charged files_charged; /* the model's */
	struct proportion_found proportion;
};

int callsites_new(
    const struct model *m, enum moment moment, struct callsites **out, struct err *err);
/* The same at the end of a model that ends with the refusal of that request: of a space's model,
 * which keeps no failures of its own. */
int callsites_refused(
    const struct model *m, const struct failure *refused, struct callsites **out, struct err *err);
void callsites_free(struct callsites *p); /* accepts NULL */

/* The place of a stack: index into list; CALLSITE_NONE: it has none, or is too small to matter. */
static inline uint32_t callsites_of_stack(
    const struct callsites *p, enum stack_stats_kind kind, uint32_t stack)
{
	uint16_t at = stack < p->limits[kind] ? p->of[kind][stack] : 0;

	return at ? at - 1u : CALLSITE_NONE;
}

/* Blocks or mappings of that stack are the place's. */
static inline bool callsites_made_at(const struct callsites *p, uint32_t callsite, uint32_t stack)
{
	return callsites_of_stack(p, STACK_STATS_HEAP, stack) == callsite ||
	       callsites_of_stack(p, STACK_STATS_MAP, stack) == callsite ||
	       callsites_of_stack(p, STACK_STATS_SHARED, stack) == callsite ||
	       callsites_of_stack(p, STACK_STATS_FILE, stack) == callsite ||
	       callsites_of_stack(p, STACK_STATS_COPY, stack) == callsite;
}

/* Most of it is mapped of files: read from there, and not made. */
static inline bool callsite_is_mapped_files(const struct callsite *p)
{
	return p->file_bytes > p->live_bytes / 2;
}

/* Bytes of its mappings that lie free inside. */
uint64_t callsite_unused(const struct callsite *callsite);

/* All of its live blocks are of one size, but for a few small ones. */
bool callsite_is_uniform(const struct callsite *callsite);

/* How many of its largest blocks make up what lives of it: an array's header, made on the same
 * line, is none. */
static inline uint64_t callsite_large_blocks(const struct callsite *callsite)
{
	return callsite->largest
		   ? (callsite->live_bytes + callsite->largest / 2) / callsite->largest
		   : 0;
}

/* The largest of its blocks that surely lives: no more than that lives of what was made when it
 * was.
 */
uint64_t callsite_largest_live(const struct callsite *callsite);

/* Most of it are modules that were imported: code and its data, whatever it is used for. */
bool callsite_is_import(const struct callsite *callsite);

/* What it makes is given back when its work is done: of what is older than any of its blocks ever
 * got, nothing lives, however much of it lives now. */
bool callsite_is_working_set(const struct callsite *callsite, uint64_t moment_ns);

/* Bytes kept by `place` and born until `time_ns`, as far as they still lived at the moment. */
double callsite_kept(const struct callsite *callsite, uint64_t time_ns);
/* The same in blocks. */
double callsite_kept_count(const struct callsite *callsite, uint64_t time_ns);

/* Is it the line that a person would blame? */
static inline bool callsite_is_line(const struct callsite *p, const struct symbol *symbol)
{
	return symbol->line == p->line && str_same(symbol->function, p->function) &&
	       str_same(symbol->file, p->file);
}

#endif
