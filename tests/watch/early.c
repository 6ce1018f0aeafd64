/*
 * early TRACE...: the verdict on each process of these traces at three quarters of its life, as if
 * the next request of the call site that grows most had been refused. Prints a line for each
 * process with a limit on the host, fields separated by tabs: pid, bytes that live, cause,
 * confidence. A life ends as in backtest.c. backtest.py compares.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "knowledge/knowledge.h"
#include "model/callsite/callsite.h"
#include "model/model.h"
#include "model/space/space.h"
#include "trace/trace.h"
#include "util/num.h"
#include "verdict/failure/failure.h"
#include "verdict/verdict.h"
#include "watch/growth.h"
#include "watch/rooms.h"

#define LIFE_PART 0.75

/* A trace that ends at a time, with a refused request. */
struct early {
	struct feed trace;
	uint64_t until_ns, live_bytes;
	struct event refused;
	struct event_level levels[2]; /* of that event: the limit is what is used */
	bool over;
};

static int next_early(void *self, struct event *out, struct err *err)
{
	struct early *p = self;
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
	struct early *p = self;

	p->over = false;
	return p->trace.rewind(p->trace.self, err);
}

/* As the trace's own feed, by way of struct early. */
#define PASS(type, name, arguments, call)                                                          \
	static type early_##name arguments                                                         \
	{                                                                                          \
		const struct feed *t = &((struct early *)self)->trace;                             \
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

/* Return the call site that kept most of late, or else any; NULL: nothing lives. */
static const struct callsite *fastest(const struct callsites *all, uint64_t now_ns)
{
	const struct callsite *best = NULL;
	double most = 0;

	for (uint32_t i = 0; i < all->count; i++) {
		const struct callsite *c = &all->list[i];
		double late = growth_is_of(c) ? (double)c->facts.live_bytes -
						    growth_kept(c, now_ns - now_ns / 4)
					      : 0;

		if (late > most || (!best && c->facts.live_bytes)) {
			most = late;
			best = c;
		}
	}
	return best;
}

/* Set the end of *p, and the request that is refused there. 1: no limit is known. */
static int set_end(struct early *p, struct err *err)
{
	const struct callsite *next;
	struct callsites *all;
	struct room room;
	struct model *m;
	uint64_t used;
	int r = feed_until_model(p->trace, UINT64_MAX, p->until_ns, &m, err);

	if (r)
		return r;
	r = rooms_of_host(m, &room) ? callsites_new(m, AT_END, &all, err) : 1;
	if (r) {
		model_free(m);
		return r;
	}
	p->live_bytes = m->blocks.bytes + m->maps.bytes;
	next = fastest(all, p->until_ns);
	used = num_most(p->live_bytes, levels_value(&m->measured.levels, TRACE_LEVEL_VSIZE));
	p->levels[0] = (struct event_level){TRACE_LEVEL_VSIZE, used};
	p->levels[1] = (struct event_level){TRACE_LEVEL_LIMIT_AS, used};
	p->refused = (struct event){.kind = EV_FAILED,
	    .api = TRACE_API_MALLOC,
	    .space = TRACE_SPACE_HOST,
	    .stack = next ? next->stack : 0,
	    .time_ns = m->run.last_ns,
	    .size = next ? callsite_largest_live(next) : 1,
	    .u.failed = {.why = TRACE_FAIL_ERRNO, .result = ENOMEM},
	    .levels = p->levels,
	    .level_count = 2};
	callsites_free(all);
	model_free(m);
	return 0;
}

static int print_process(struct trace *t, struct err *err)
{
	struct early early = {.trace = feed_of_trace(t)};
	struct verdict_result result;
	struct failure_view host;
	struct model *m;
	uint64_t end_ns;
	int r = feed_until_model(early.trace, UINT64_MAX, UINT64_MAX, &m, err);

	if (r)
		return r;
	failure_settle(m);
	failure_read(m, NULL, &host);
	end_ns = host.kind != FAILURE_NONE ? host.time_ns : m->run.last_ns;
	early.until_ns =
	    m->run.first_ns + (uint64_t)((double)(end_ns - m->run.first_ns) * LIFE_PART);
	model_free(m);
	r = set_end(&early, err);
	if (r)
		return r < 0 ? r : 0;
	r = verdict_of_feed((struct feed){.self = &early,
				.next = next_early,
				.rewind = rewind_early,
				.symbols = early_symbols,
				.info = early_info,
				.facts = early_facts,
				.space = early_space,
				.each_live = early_each_live},
	    NULL, &result, err);
	if (r)
		return r;
	printf("%u\t%llu\t%s\t%.3f\n", trace_facts(t)->pid, (unsigned long long)early.live_bytes,
	    cause_name(result.verdict.cause), result.verdict.confidence);
	verdict_fini(&result);
	return 0;
}

int main(int argc, char **argv)
{
	int status = 0;

	for (int i = 1; i < argc; i++) {
		struct trace_set set;
		struct err err;
		int r = trace_set_open(argv[i], &set, &err);

		for (size_t k = 0; !r && k < set.count; k++)
			r = print_process(set.images[k], &err);
		if (r) {
			fprintf(stderr, "%s\n", err.text);
			status = 1;
			continue;
		}
		trace_set_close(&set);
	}
	return status;
}
