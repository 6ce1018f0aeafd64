#include "verdict/judge/arena_blame.h"

#include <errno.h>
#include <stdlib.h>

#include "model/callsite/trend.h"
#include "util/text/str.h"
#include "util/tuned.h"
#include "verdict/framework/framework_frames.h"
#include "verdict/judge/decide.h"
#include "verdict/ledger/host_slack.h"

TUNED(double, COME_AND_GO, 0.75,
    "a line that keeps a part of what it makes gives back less; one with a request in flight more");
TUNED(double, ENDED_MIN, 4.0, "fewer blocks than these may end by chance");
TUNED(double, LIVE_PART, 32.0,
    "an array that grows by an eighth at a time takes nine times its size until then; of these a "
    "quarter, as above");
TUNED(double, SAMPLES_MIN, 24.0,
    "of so many samples of arrays that grow and stay, all have been enlarged by chance once in 16");
TUNED(double, ENTRY_MOST, 64.0,
    "an entry of an array is a pointer of 8 bytes, a small object has 512 at most");
TUNED(double, ENTRY_USUAL, 8.0, "and is of some 64: a number with its tuple, a string, a slot");
TUNED(double, EXPLAINED, 0.5, "arrays for less than half of the objects leave most to other lines");
TUNED(double, ALONG_LEAST, 1.0 / 8,
    "half of what grows along is there with half of the arenas: less is a request in flight");
TUNED(double, ALONG_MOST, 7.0 / 8, "and nearly all of it was made at the start");
TUNED(double, STARTED_PART, 16.0, "a table has room for some entries before the first is kept");
TUNED(unsigned, ENLARGED_MIN, 3u, "two enlargements follow the arenas by chance");
TUNED(double, TABLE_CORRELATION, 0.95,
    "a table is enlarged when as many entries were added as its factor says, to an arena or two");
TUNED(double, TABLE_TIMES, 2.0, "a table that was not even doubled may have grown for others");
TUNED(double, OTHER_PART, 8.0, "a line with fewer arenas may have got them by chance, too");
TUNED(double, COMMON, 0.9, "a few arenas come from what the program does besides");

/* The blocks that a call site is seen to make for the interpreter. */
struct made {
	double arrays; /* live bytes */
	double arrays_then; /* part of these, born until half of the arenas were there */
	double acquired; /* bytes of all blocks; one that grows counts again each time */
	double objects, ended; /* number of blocks; one that grows counts once */
	uint64_t most; /* live bytes of the stack with most of them */
	uint32_t stack;
};

struct arenas {
	const struct verdict_result *r;
	const char *interpreter;
	uint32_t *callsites; /* with the program's own arenas that grew */
	uint32_t count;
	double bytes; /* of these at the moment */
	uint64_t start_ns, half_ns; /* when a STARTED_PART, and half, of them were there */
	struct made *made; /* by call site */
};

static const struct callsite *callsite_at(const struct arenas *a, uint32_t i)
{
	return &a->r->callsites->list[i];
}

static bool is_own(const struct callsite *c)
{
	return c->owner == OWNER_USER && c->stack && !callsite_is_import(c);
}

/* Arenas of the start are not among those that grew. */
static bool has_arenas(const struct callsite *c)
{
	return is_own(c) && c->arena_share.any && c->facts.map_bytes && c->survivors.stays;
}

/* Return the bytes of arenas that were there then, and still are. */
static double arenas_until(const struct arenas *a, uint64_t time_ns)
{
	double sum = 0;

	for (uint32_t i = 0; i < a->count; i++)
		sum += survivors_bytes_until(callsite_at(a, a->callsites[i]), time_ns);
	return sum;
}

/* Return when that share of them was there. */
static uint64_t time_of(const struct arenas *a, double share)
{
	uint64_t low = a->r->callsites->first_ns, high = a->r->callsites->moment_ns;
	double bytes = arenas_until(a, high) * share;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (arenas_until(a, middle) < bytes)
			low = middle + 1;
		else
			high = middle;
	}
	return high;
}

static void find_arenas(struct arenas *a)
{
	for (uint32_t i = 0; i < a->r->callsites->count; i++) {
		if (!has_arenas(callsite_at(a, i)))
			continue;
		a->callsites[a->count++] = i;
		a->bytes += (double)callsite_at(a, i)->facts.map_bytes;
	}
	a->start_ns = time_of(a, 1 / STARTED_PART);
	a->half_ns = time_of(a, 0.5);
}

/* Return the bytes of the stack's live blocks that were born until the half-time. */
static double born_until(const struct stack_stats *s, uint64_t half_ns)
{
	double sum = 0;

	for (uint32_t i = 0, used = stack_stats_used(s); i < used; i++) {
		struct cohort own;
		const struct cohort *c = stack_stats_cohort(s, i, &own);
		double alive = (double)(c->bytes - c->freed_bytes);

		if (c->last_ns <= half_ns)
			sum += alive;
		else if (c->time_ns < half_ns)
			sum += alive * (double)(half_ns - c->time_ns) /
			       (double)(c->last_ns - c->time_ns);
	}
	return sum;
}

/* Return the call site of the program's own code that made the stack's blocks for the interpreter;
 * CALLSITE_NONE: it is another's. */
static uint32_t of_program(const struct arenas *a, const struct stack_stats *s)
{
	const struct callsites *p = a->r->callsites;
	uint32_t at =
	    s->kind == STACK_STATS_HEAP ? callsites_of_stack(p, s->kind, s->stack) : CALLSITE_NONE;

	return at != CALLSITE_NONE && is_own(&p->list[at]) &&
		       arenas_by_interpreter(&a->r->model->feed, a->interpreter, s->stack)
		   ? at
		   : CALLSITE_NONE;
}

static void read_made(struct arenas *a)
{
	const struct verdict_result *r = a->r;
	const struct model *m = r->model;

	for (size_t i = 0; i < m->stacks.count; i++) {
		const struct stack_stats *now = stack_table_number(&m->stacks, i), *then;
		uint32_t at = of_program(a, now);
		uint64_t live, count;
		struct made *made;

		if (at == CALLSITE_NONE)
			continue;
		made = &a->made[at];
		then = model_stack_stats(m, now, r->callsites->moment, &live, &count);
		made->arrays += (double)live;
		made->arrays_then += born_until(then, a->half_ns);
		made->acquired += (double)stack_stats_total_bytes(then);
		made->objects += (double)(count + stack_stats_ended_count(then));
		made->ended += (double)stack_stats_ended_count(then);
		if (live > made->most) {
			made->most = live;
			made->stack = now->stack;
		}
	}
}

static bool is_along(double then, double all)
{
	return then >= all * ALONG_LEAST && then <= all * ALONG_MOST;
}

/* True if the line keeps hardly anything of what it is seen to make. A sample rarely has the last
 * block of an object that grew, so there bytes tell. */
static bool comes_and_goes(const struct arenas *a, uint32_t callsite)
{
	const struct made *made = &a->made[callsite];
	uint64_t every = a->r->coverage.sample_every;

	if (!every)
		return made->ended >= ENDED_MIN && made->ended >= made->objects * COME_AND_GO;
	return made->acquired >= SAMPLES_MIN * (double)every &&
	       made->arrays <= made->acquired / LIVE_PART;
}

/* Blame that call site, by one of its stacks. */
static void blame_callsite(
    struct verdict_result *r, uint32_t callsite, uint32_t stack, enum fact fact, double value)
{
	const struct callsite *c = &r->callsites->list[callsite];
	struct verdict *v = &r->verdict;

	v->blame.stack = stack_view_of(&r->model->feed, stack);
	for (size_t i = v->blame.stack.count; i-- > 0;)
		if (callsite_is_line(c, &v->blame.stack.symbols[i])) {
			decide_blame(r, i);
			break;
		}
	v->blame.bytes = r->ranking.list[0].finding.bytes;
	decide_fact(v, fact, value);
}

/* Return the bytes of arenas that the call site asked for, if it may keep what it makes; else 0. */
static double own_arenas(const struct arenas *a, uint32_t callsite)
{
	const struct callsite *c = callsite_at(a, callsite);

	return has_arenas(c) && !comes_and_goes(a, callsite) ? (double)c->facts.map_bytes : 0;
}

/* Return the call site with most arenas of its own; CALLSITE_NONE: they are too few. */
static uint32_t most_arenas(const struct arenas *a)
{
	uint32_t best = CALLSITE_NONE;
	double most = a->bytes / OTHER_PART;

	for (uint32_t i = 0; i < a->r->callsites->count; i++) {
		double own = own_arenas(a, i);

		if (own >= most) {
			most = own;
			best = i;
		}
	}
	return best;
}

/* Blame the line with most of the arrays that grew along with the arenas, if these may list most of
 * the objects, and no line keeps more. */
static bool blame_arrays(struct verdict_result *r, const struct arenas *a)
{
	uint32_t best = CALLSITE_NONE, other = most_arenas(a);
	double sum = 0;

	for (uint32_t i = 0; i < r->callsites->count; i++) {
		const struct made *made = &a->made[i];

		if (made->arrays <= 0 || !is_along(made->arrays_then, made->arrays))
			continue;
		sum += made->arrays;
		if (best == CALLSITE_NONE || made->arrays > a->made[best].arrays)
			best = i;
	}
	if (best == CALLSITE_NONE || sum * ENTRY_MOST < a->bytes * EXPLAINED ||
	    (other != CALLSITE_NONE && a->made[best].arrays * ENTRY_USUAL < own_arenas(a, other)))
		return false;
	blame_callsite(r, best, a->made[best].stack, FACT_ARENA_ARRAYS, a->made[best].arrays);
	return true;
}

/* Return how many sizes the stack's table had since the arenas began to grow; 0: its blocks are no
 * table, since not each is larger than the one before. */
static uint32_t table_sizes(const struct arenas *a, const struct stack_stats *s)
{
	uint64_t size = 0;
	uint32_t n = 0;

	for (uint32_t i = 0, used = stack_stats_used(s); i < used; i++) {
		struct cohort own;
		const struct cohort *c = stack_stats_cohort(s, i, &own);

		if (c->time_ns < a->start_ns)
			continue;
		if (c->max <= size)
			return 0;
		size = c->max;
		n++;
	}
	return n;
}

/* Return the size of the stack's table, if its blocks are one that was enlarged as the arenas grew;
 * else 0. Others may have had some arenas before, so the size need not be proportional. A sample
 * shows some of the sizes. */
static uint64_t table_size(const struct arenas *a, const struct stack_stats *s)
{
	double arenas[STACK_STATS_COHORTS], sizes[STACK_STATS_COHORTS], slope;
	uint32_t n = 0;

	if (table_sizes(a, s) < ENLARGED_MIN)
		return 0;
	for (uint32_t i = 0, used = stack_stats_used(s); i < used; i++) {
		struct cohort own;
		const struct cohort *c = stack_stats_cohort(s, i, &own);

		if (c->time_ns < a->start_ns)
			continue;
		arenas[n] = arenas_until(a, c->time_ns);
		sizes[n++] = (double)c->max;
	}
	return sizes[n - 1] >= TABLE_TIMES * sizes[0] &&
		       trend_fit(arenas, sizes, n, &slope) >= TABLE_CORRELATION
		   ? (uint64_t)sizes[n - 1]
		   : 0;
}

/* Blame the line that enlarges the largest table that grew along with the arenas. */
static bool blame_table(struct verdict_result *r, const struct arenas *a)
{
	const struct model *m = r->model;
	uint32_t best = CALLSITE_NONE, stack = 0;
	uint64_t most = 0;

	for (size_t i = 0; i < m->stacks.count; i++) {
		const struct stack_stats *now = stack_table_number(&m->stacks, i);
		uint32_t at = of_program(a, now);
		uint64_t live, count, size;

		if (at == CALLSITE_NONE)
			continue;
		size =
		    table_size(a, model_stack_stats(m, now, r->callsites->moment, &live, &count));
		if (count > 1 && !r->coverage.sample_every)
			continue;
		if (size > most) {
			most = size;
			best = at;
			stack = now->stack;
		}
	}
	if (best == CALLSITE_NONE)
		return false;
	blame_callsite(r, best, stack, FACT_ARENA_TABLE, (double)most);
	return true;
}

/* Blame the line with most arenas of those that may keep what they make. */
static bool blame_other(struct verdict_result *r, const struct arenas *a)
{
	uint32_t best = most_arenas(a);

	if (best == CALLSITE_NONE)
		return false;
	blame_callsite(r, best, r->callsites->list[best].stack, FACT_ARENA_OTHER,
	    (double)r->callsites->list[best].facts.map_bytes);
	return true;
}

/* Return how many of Python's frames the stack shares with that one, from the outermost on. */
static size_t in_common(const struct stack_view *with, const struct symbol *symbols, size_t count)
{
	size_t i = 0, k = 0, n = 0;

	for (;;) {
		while (i < with->count && !with->symbols[i].python)
			i++;
		while (k < count && !symbols[k].python)
			k++;
		if (i == with->count || k == count ||
		    !symbol_same_function(&with->symbols[i], &symbols[k]))
			return n;
		i++;
		k++;
		n++;
	}
}

/* Blame the innermost function that is on nearly all of the arenas' stacks. A module's code is on
 * all of them, and says nothing. */
static int blame_common(struct verdict_result *r, const struct arenas *a)
{
	const struct callsites *p = r->callsites;
	const struct model *m = r->model;
	const struct stack_view with = r->verdict.blame.stack;
	double *bytes = calloc(with.count + 1, sizeof(*bytes)), sum = 0;
	size_t depth = 0, best = with.count;

	if (!bytes)
		return -ENOMEM;
	for (size_t i = 0; i < m->stacks.count; i++) {
		const struct stack_stats *s = stack_table_number(&m->stacks, i);
		uint32_t at = callsites_of_stack(p, s->kind, s->stack);
		const struct symbol *symbols;
		uint64_t live, count;

		if (s->kind != STACK_STATS_MAP || at == CALLSITE_NONE || !has_arenas(&p->list[at]))
			continue;
		model_stack_stats(m, s, p->moment, &live, &count);
		if (live) {
			size_t frames = m->feed.symbols(m->feed.self, s->stack, &symbols);

			bytes[in_common(&with, symbols, frames)] += (double)live;
			sum += (double)live;
		}
	}
	for (size_t i = with.count; i-- > 0;)
		bytes[i] += bytes[i + 1];
	for (size_t i = 0; i < with.count; i++) {
		const struct symbol *s = &with.symbols[i];

		if (!s->python)
			continue;
		if (bytes[++depth] < sum * COMMON)
			break;
		if (blame_owner(&p->context, s) == OWNER_USER && !blame_is_comprehension(s) &&
		    !str_same(s->function, "<module>"))
			best = i;
	}
	free(bytes);
	if (best == with.count)
		return 0;
	decide_blame(r, best);
	r->verdict.blame.bytes = r->ranking.list[0].finding.bytes;
	decide_fact(&r->verdict, FACT_ARENA_COMMON, a->bytes);
	return 0;
}

const char *arena_blame_words(const struct verdict *v)
{
	for (size_t i = 0; i < v->evidence_count; i++)
		switch (v->evidence[i].fact) {
		case FACT_ARENA_ARRAYS:
			return ": small objects, and the arrays made there grew with them";
		case FACT_ARENA_TABLE:
			return ": small objects, and the table enlarged there grew with them";
		case FACT_ARENA_OTHER:
			return ": small objects, and the line that asked for most memory gives "
			       "back what it makes";
		case FACT_ARENA_COMMON:
			return " or in what it calls: small objects, and which line keeps them is "
			       "not recorded (--python-objects shows it)";
		default:
			break;
		}
	return NULL;
}

/* True if the verdict is of blocks that stay, most of them arenas. */
static bool is_about_arenas(const struct verdict_result *r)
{
	const struct verdict *v = &r->verdict;
	uint32_t callsite = r->ranking.count ? r->ranking.list[0].finding.blame : CALLSITE_NONE;
	const struct callsite *c = callsite == CALLSITE_NONE ? NULL : &r->callsites->list[callsite];

	return v->cause == CAUSE_LEAK && c && v->blame.function && v->blame.stack.count &&
	       has_arenas(c) && c->facts.map_bytes > c->facts.live_bytes / 2 &&
	       (!r->frameworks.frames ||
		   framework_frame(r->frameworks.frames, &v->blame.stack.symbols[v->blame.frame])
			   .role == ROLE_NONE);
}

int arena_blame(struct verdict_result *r)
{
	struct arenas a = {.r = r};
	int rc = 0;

	if (!is_about_arenas(r))
		return 0;
	a.interpreter = feed_interpreter(&r->model->feed);
	a.made = calloc(r->callsites->count, sizeof(*a.made));
	a.callsites = calloc(r->callsites->count, sizeof(*a.callsites));
	if (!a.made || !a.callsites) {
		rc = -ENOMEM;
		goto out;
	}
	find_arenas(&a);
	read_made(&a);
	if (comes_and_goes(&a, r->ranking.list[0].finding.blame) && !blame_arrays(r, &a) &&
	    !blame_table(r, &a) && !blame_other(r, &a))
		rc = blame_common(r, &a);
out:
	free(a.callsites);
	free(a.made);
	return rc;
}
