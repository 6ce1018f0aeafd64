#include "watch/early.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "model/callsite/callsite.h"
#include "util/num.h"
#include "util/tuned.h"
#include "verdict/forecast/growth.h"
#include "verdict/forecast/rooms.h"
#include "verdict/judge/rank.h"

TUNED(double, REST_KNOWN, 0.5,
    "as likely as not, what fills the rest of the limit is what filled it so far");

static int next_early(void *self, struct event *out, struct err *err)
{
	struct early_feed *p = self;
	int r = p->over ? 0 : p->trace.next(p->trace.self, out, err);

	if (r == 1 && out->time_ns <= p->until_ns && out->stack == p->refused.stack &&
	    out->kind == EV_ALLOC)
		p->refused.thread = out->thread;
	if (p->over || r < 0 || (r == 1 && out->time_ns <= p->until_ns))
		return r;
	p->over = true;
	*out = p->refused;
	return 1;
}

static int rewind_early(void *self, struct err *err)
{
	struct early_feed *p = self;

	p->over = false;
	return p->trace.rewind(p->trace.self, err);
}

/* As the trace's own feed, by way of struct early_feed. */
#define PASS(type, name, arguments, call)                                                          \
	static type early_##name arguments                                                         \
	{                                                                                          \
		const struct feed *t = &((struct early_feed *)self)->trace;                        \
                                                                                                   \
		return call;                                                                       \
	}

PASS(size_t, symbols, (void *self, uint32_t stack, const struct symbol **out),
    t->symbols(t->self, stack, out))
PASS(const char *, info, (void *self, const char *key), t->info(t->self, key))
PASS(const struct trace_facts *, facts, (void *self), t->facts(t->self))
PASS(const char *, space, (void *self, uint32_t id), t->space(t->self, id))
PASS(int, each_live, (void *self, int (*fn)(void *arg, const struct block *b), void *arg),
    t->each_live(t->self, fn, arg))

/* The request that is taken for the one refused next: a block of a call site, or a thread that it
 * starts. */
struct next {
	uint32_t stack;
	uint64_t size; /* a thread: of its stack */
	uint64_t threads, threads_ended; /* that live, and do not; a block: 0 */
};

static double kept_late(const struct callsite *c, uint64_t now_ns)
{
	return (double)c->facts.live_bytes - growth_kept(c, now_ns - now_ns / 4);
}

/* The call site that kept most of late, or else any. */
static const struct callsite *fastest(const struct callsites *all, uint64_t now_ns)
{
	const struct callsite *best = NULL;
	double most = 0;

	for (uint32_t i = 0; i < all->count; i++) {
		const struct callsite *c = &all->list[i];
		double late = growth_is_of(c) ? kept_late(c, now_ns) : 0;

		if (late > most || (!best && c->facts.live_bytes)) {
			most = late;
			best = c;
		}
	}
	return best;
}

static struct next next_of(
    const struct model *m, const struct callsites *all, enum limit_kind limit, uint64_t now_ns)
{
	const struct callsite *c = fastest(all, now_ns);
	struct thread_stacks stacks = {.callsite = CALLSITE_NONE};
	double late;

	if (limit == LIMIT_AS || limit == LIMIT_DATA)
		stacks = thread_stacks_read(m, all);
	late = thread_stacks_until(&stacks, now_ns) -
	       thread_stacks_until(&stacks, now_ns - now_ns / 4);
	if (late > 0 && (!c || !growth_is_of(c) || late > kept_late(c, now_ns))) {
		struct stack_stats_more own;
		const struct stack_stats_more *tables = stack_stats_view(stacks.tables, &own);

		return (struct next){stacks.tables->stack, (uint64_t)stacks.each,
		    tables->live_count, tables->total_count - tables->live_count};
	}
	return (struct next){c ? c->stack : 0, c ? callsite_largest_live(c) : 1, 0, 0};
}

static void set_level(struct early_feed *p, uint32_t key, uint64_t value)
{
	p->levels[p->refused.level_count++] = (struct event_level){key, value};
}

/* Set the levels that the process would note with a refusal: its latest, and a limit that is all in
 * use. A limit on data is one; any other counts as one on address space, which refuses, too.
 * A thread that is refused comes with its own count, since the process seldom notes one. */
static void set_levels(
    struct early_feed *p, const struct model *m, const struct early *e, const struct next *next)
{
	const struct levels *now = &m->measured.levels;
	bool data = e->room.limit == LIMIT_DATA;
	uint32_t use = data ? TRACE_LEVEL_DATA : TRACE_LEVEL_VSIZE;
	uint32_t limit = data ? TRACE_LEVEL_LIMIT_DATA : TRACE_LEVEL_LIMIT_AS;
	uint64_t used = num_most(e->live_bytes, levels_value(now, use));

	p->refused.levels = p->levels;
	for (uint32_t key = 0; key < TRACE_LEVEL_CG_CURRENT; key++)
		if (now->known[key] && key != use &&
		    !(next->threads &&
			(key == TRACE_LEVEL_THREADS || key == TRACE_LEVEL_THREADS_STARTED)))
			set_level(p, key, now->value[key]);
	if (next->threads) {
		set_level(p, TRACE_LEVEL_THREADS, next->threads + 1);
		set_level(p, TRACE_LEVEL_THREADS_STARTED, next->threads + next->threads_ended);
	}
	set_level(p, use, used);
	set_level(p, limit, used);
}

/* Set the end of e->feed, and the request that is refused there. 1: no limit is known. */
static int set_end(struct early *e, struct err *err)
{
	struct early_feed *p = &e->feed;
	struct callsites *all;
	struct next next;
	struct model *m;
	int r = feed_until_model(p->trace, UINT64_MAX, p->until_ns, &m, err);

	if (r)
		return r;
	r = rooms_of_host(m, &e->room) ? callsites_new(m, AT_END, &all, err) : 1;
	if (r) {
		model_free(m);
		return r;
	}
	p->until_ns = num_least(p->until_ns, m->run.last_ns);
	growth_forecast(m, all, m->run.last_ns, &e->room, &e->forecast);
	e->live_bytes = m->blocks.bytes + m->maps.bytes;
	next = next_of(m, all, e->room.limit, p->until_ns);
	p->refused = (struct event){.kind = EV_FAILED,
	    .api = next.threads ? TRACE_API_THREAD : TRACE_API_MALLOC,
	    .space = TRACE_SPACE_HOST,
	    .stack = next.stack,
	    .time_ns = m->run.last_ns,
	    .size = next.size,
	    .u.failed = {.why = TRACE_FAIL_ERRNO, .result = ENOMEM}};
	set_levels(p, m, e, &next);
	callsites_free(all);
	model_free(m);
	return 0;
}

/* True if that cause is growth that the work itself makes, so that more work makes more of it. A
 * load, a preallocation and a single request end by themselves. */
static bool goes_on(enum cause cause)
{
	return cause == CAUSE_LEAK || cause == CAUSE_STATE_RETENTION ||
	       cause == CAUSE_PROMPT_GROWTH || cause == CAUSE_CONCURRENCY;
}

/* True if it is about the request that is refused: no more is needed than what is in use, and still
 * too much; or it fits into no hole. While memory is left, there is none. */
static bool wants_refusal(enum cause cause)
{
	return cause == CAUSE_EXTERNAL || cause == CAUSE_FRAGMENTATION;
}

double early_confidence(
    enum cause cause, double confidence, double used, const struct forecast *forecast)
{
	double rest = REST_KNOWN;

	if (wants_refusal(cause))
		rest = 0;
	if (goes_on(cause) && forecast->state == FORECAST_GROWS)
		rest = fmax(rest, forecast->since / (forecast->since + forecast->seconds));
	return confidence * (used + (1 - used) * rest);
}

int early_judge(struct feed trace, uint64_t until_ns, struct early *out, struct err *err)
{
	const struct verdict *v = &out->as_if.verdict;
	int r;

	memset(out, 0, sizeof(*out));
	out->feed.trace = trace;
	out->feed.until_ns = until_ns;
	r = set_end(out, err);
	if (r)
		return r;
	r = verdict_of_running((struct feed){.self = &out->feed,
				   .next = next_early,
				   .rewind = rewind_early,
				   .symbols = early_symbols,
				   .info = early_info,
				   .facts = early_facts,
				   .space = early_space,
				   .each_live = early_each_live},
	    &out->as_if, err);
	if (r)
		return r;
	out->cause = v->cause;
	out->confidence = early_confidence(v->cause, v->confidence,
	    1 - (double)out->room.left / (double)out->room.bytes, &out->forecast);
	if (out->confidence < RANK_CONFIDENCE_MIN) {
		out->cause = CAUSE_UNKNOWN;
		out->confidence = 0;
	}
	return 0;
}

void early_fini(struct early *e)
{
	verdict_fini(&e->as_if);
}
