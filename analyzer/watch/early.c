#include "watch/early.h"

#include <errno.h>

#include "model/callsite/callsite.h"
#include "model/model.h"
#include "util/num.h"
#include "watch/growth.h"
#include "watch/rooms.h"

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

int early_begin(struct early *p, struct feed trace, uint64_t until_ns, struct err *err)
{
	const struct callsite *next;
	struct callsites *all;
	struct room room;
	struct model *m;
	uint64_t used;
	int r;

	*p = (struct early){.trace = trace};
	r = feed_until_model(trace, UINT64_MAX, until_ns, &m, err);
	if (r)
		return r;
	p->until_ns = until_ns == UINT64_MAX ? m->run.last_ns : until_ns;
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

struct feed early_feed(struct early *e)
{
	return (struct feed){.self = e,
	    .next = next_early,
	    .rewind = rewind_early,
	    .symbols = early_symbols,
	    .info = early_info,
	    .facts = early_facts,
	    .space = early_space,
	    .each_live = early_each_live};
}
