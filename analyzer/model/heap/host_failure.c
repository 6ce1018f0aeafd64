/*
 * host_failure.c - see host_failure.h.
 */
#include "model/heap/host_failure.h"

#include <string.h>

#include "model/model.h"
#include "util/num.h"
#include "util/text/str.h"

/* A second try follows at once: after at most this many acquisitions, itself included. */
#define RETRY_WITHIN 4u

/* Since that refusal the process has acquired as much again as lived then. */
static bool went_on(const struct model *m, const struct failure *f)
{
	return num_sum(m->total.bytes - f->until_bytes, f->periods_bytes) >
	       num_sum(f->until_live, f->size);
}

/* What lived then and how much had been acquired is known in part only, before a checkpoint. False:
 * nor is it yet what was done since. */
static bool is_told_by(const struct model *m, struct failure *f, const struct event *e)
{
	uint64_t past = replaced_until_ns(&m->feed), live = m->blocks.bytes + m->maps.bytes;

	if (f->until_past || f->time_ns > past)
		return true;
	if (e->time_ns <= past)
		return false;
	f->until_past = true;
	f->until_bytes = m->total.bytes;
	f->until_live = f->until_live > live ? f->until_live : live;
	f->after = m->total.count;
	return true;
}

/* What lived when it was refused a checkpoint took away: it is known that it was, and no more. */
static void got_over(struct failure *f, uint64_t time_ns)
{
	f->recovered = true;
	f->recovered_ns = time_ns;
	f->retried |= f->until_past;
	f->settled |= f->until_past;
}

/* By which a half may differ: what is rounded, or the rest of a division. */
#define HALF_ROUND 64u

bool host_failure_is_half(uint64_t size, uint64_t whole)
{
	return num_about(size, whole / 2, HALF_ROUND);
}

/* So much was let go since that the request would fit: who still wants it asks for all of it. */
static bool is_given_up(const struct model *m, const struct failure *f)
{
	return num_sum(m->blocks.bytes + m->maps.bytes, f->size) <= f->until_live;
}

/*
 * What the thread that was refused is granted at the same stack before as much else was done tells
 * whether it did without: all of it, or half of what was refused last, or less at once, as code
 * asks that takes what it can get. Later, or when what it was for was given up, it is work of its
 * own.
 */
static bool is_granted(const struct model *m, const struct failure *f, const struct event *e)
{
	bool at_once = m->total.count - f->after <= RETRY_WITHIN && !is_given_up(m, f);

	return e->thread == f->thread &&
	       (e->size >= f->size || at_once || host_failure_is_half(e->size, f->least));
}

/* From that part of it on it was most of what lived, or is about as much; less is next to nothing.
 */
#define PILE_MOST 2u
#define PILE_LITTLE 8u
#define PILE_BEGUN 32u

/* Most of what lived had been made at that stack, and was let go: what was refused is a part of a
 * pile, and a batch that is too large, or the one request that is. */
static bool was_pile(const struct failure *f)
{
	return f->pile && f->pile >= f->until_live / PILE_MOST;
}

/*
 * One more of such a pile is as large as the one that was refused, whosever it is. Who tries it
 * with a smaller batch begins at once, and piles up half as much: the next request is smaller, or
 * comes when something else was done.
 */
static bool is_piled(struct failure *f, const struct event *e, uint64_t since)
{
	if (e->thread != f->thread)
		return false;
	f->again_over |= f->again_fallen || (!f->again_most && since > f->pile / PILE_LITTLE);
	f->again = num_sum(f->again, e->size);
	if (f->again > f->again_most)
		f->again_most = f->again;
	return !f->again_over && f->again >= f->pile / PILE_MOST;
}

void host_failure_released(struct model *m, const struct event *e, uint32_t stack, uint64_t bytes)
{
	struct failure *f = host_failure_newest(&m->refusals);

	if (e->thread != f->thread || stack != f->stack || !stack)
		return;
	if (!f->again_most) {
		f->pile = num_sum(f->pile, bytes);
		return;
	}
	f->again = num_less(f->again, bytes);
	f->again_fallen |= f->again < f->again_most / PILE_MOST;
}

static bool same_function(const struct symbol *a, const struct symbol *b)
{
	return symbol_same_function(a, b) && str_same(a->module, b->module);
}

/*
 * An allocator that asks for address space to have in stock, and is refused, makes do with less:
 * the same function asks next, not yet out of the library's call, though from another line. Who is
 * told of a refusal is out of it, and asks for what is wanted then by ways of its own.
 */
static bool makes_do(const struct model *m, const struct failure *f, const struct event *e)
{
	const struct symbol *now, *then;
	size_t count, depth, n = 0;

	if (e->kind != EV_MAP || e->api != TRACE_API_MMAP || f->api != TRACE_API_MMAP ||
	    !e->stack || !f->stack)
		return false;
	count = m->feed.symbols(m->feed.self, e->stack, &now);
	depth = m->feed.symbols(m->feed.self, f->stack, &then);
	if (!count || !depth || now[count - 1].python ||
	    !same_function(&now[count - 1], &then[depth - 1]))
		return false;
	while (n < count && n < depth && same_function(&now[n], &then[n]) &&
	       now[n].line == then[n].line)
		n++;
	return n && !now[n - 1].python && str_same(now[n - 1].module, now[count - 1].module);
}

void host_failure_acquired(struct model *m, const struct event *e)
{
	struct failure *f = host_failure_newest(&m->refusals);
	bool same = e->stack == f->stack && e->stack;
	bool next = e->thread == f->thread && !f->own++;
	uint64_t since;

	if (!is_told_by(m, f, e))
		return;
	if (next && !f->settled && makes_do(m, f, e))
		f->settled = f->retried = true;
	since =
	    num_sum(num_less(m->total.bytes, num_sum(f->until_bytes, e->size)), f->periods_bytes);
	f->settled |= f->again_over || since > (was_pile(f) ? f->pile : f->size);
	if (same && !f->settled)
		f->settled = f->retried = was_pile(f) ? is_piled(f, e, since) : is_granted(m, f, e);
	if (f->recovered)
		return;
	f->recovered =
	    f->retried ||
	    (same && (e->size >= f->size || m->total.count - f->after <= RETRY_WITHIN)) ||
	    went_on(m, f);
	if (f->recovered)
		got_over(f, e->time_ns);
}

void host_failure_period(struct model *m, const struct event *e)
{
	struct failure *f = host_failure_newest(&m->refusals);

	if (!f || f->recovered || f->time_ns > e->time_ns || f->until_past)
		return;
	if (f->time_ns > e->u.period.begin_ns) {
		if (f->until_live < e->u.period.most_bytes)
			f->until_live = e->u.period.most_bytes;
		return;
	}
	f->periods_bytes = num_sum(f->periods_bytes, e->u.period.acquired_bytes);
	if (f->periods_bytes > num_sum(f->until_live, f->size)) {
		f->until_past = true;
		got_over(f, e->time_ns);
	}
}

static uint64_t granted_at(const struct model *m, uint32_t stack)
{
	const struct stack_stats *heap = stack_table_open(&m->stacks, stack, STACK_STATS_HEAP),
				 *map = stack_table_open(&m->stacks, stack, STACK_STATS_MAP);

	return (heap ? stack_stats_total_count(heap) : 0) +
	       (map ? stack_stats_total_count(map) : 0);
}

/* What lives is about what lived then when it differs by at most this part. */
#define AS_FULL_PART 8u

/* The same request is refused once more, as nothing was granted there since, and as much lives: the
 * process went on with other things, but the memory that it had run out of was never there again.
 */
static bool is_still(const struct model *m, const struct failure *f, const struct event *e)
{
	return !f->retried && !f->until_past && e->stack && e->stack == f->stack &&
	       num_about(e->size, f->size, HALF_ROUND) &&
	       num_about(m->blocks.bytes + m->maps.bytes, f->live_bytes + f->live_map_bytes,
		   AS_FULL_PART) &&
	       granted_at(m, stack_table_id(e->stack)) == f->granted;
}

void host_failure_refused(struct model *m, const struct event *e)
{
	struct failure *f = host_failure_newest(&m->refusals);

	m->refusals.requests++;
	if (f && f->recovered && is_still(m, f, e)) {
		f->recovered = false;
		f->until_bytes = m->total.bytes;
	}
	if (f && !f->recovered) {
		/* The first of a burst is the one that matters: what follows is its echo, on the
		 * way out of it, or the second try at a lower level of the same request. */
		f->count++;
		if (e->thread == f->thread)
			f->own = 0;
		if (e->stack == f->stack)
			f->after = m->total.count;
		if (e->size > f->largest)
			f->largest = e->size;
		if (host_failure_is_half(e->size, f->least))
			f->least = e->size;
		measured_freeze_more(&m->measured, e, f->time_ns);
		return;
	}
	if (m->refusals.count == MODEL_FAILURES)
		memmove(&m->refusals.list[1], &m->refusals.list[2],
		    (MODEL_FAILURES - 2) * sizeof(*m->refusals.list));
	else
		m->refusals.count++;
	m->refusals.bursts++;
	m->refusals.epoch++;
	measured_freeze(&m->measured);
	f = host_failure_newest(&m->refusals);
	*f = (struct failure){
	    .time_ns = e->time_ns,
	    .size = e->size,
	    .largest = e->size,
	    .least = e->size,
	    .stack = e->stack,
	    .thread = e->thread,
	    .api = e->api,
	    .result = e->u.failed.result,
	    .count = 1,
	    .granted = granted_at(m, stack_table_id(e->stack)),
	    .after = m->total.count,
	    .live_bytes = m->blocks.bytes,
	    .live_map_bytes = m->maps.bytes,
	    .stack_bytes = m->maps.stack_bytes,
	    .shared_bytes = m->maps.shared_bytes,
	    .file_bytes = m->maps.file_bytes,
	    .allocator_bytes = m->maps.allocator_bytes,
	    .acquired_before = m->total.bytes,
	    .until_bytes = m->total.bytes,
	    .until_live = m->blocks.bytes + m->maps.bytes,
	    .serial = m->run.serial,
	};
}

void host_failure_end(struct model *m)
{
	struct failure *f = host_failure_newest(&m->refusals);

	if (!f)
		return;
	/* It was granted, and a part of the pile had been made again when the process ended. */
	if (was_pile(f) && f->again_most >= f->pile / PILE_BEGUN && !f->again_over && !f->settled)
		f->recovered = f->retried = true;
	/* The one that was granted may have been another's: of the next worker at the same place,
	 * while what was refused brought the process down. It had to live on to have got over it.
	 */
	if (f->recovered && (m->run.signalled || (m->run.exited && m->run.exit_code)) &&
	    !went_on(m, f))
		f->recovered = f->retried = false;
}

const struct failure *model_failure(const struct model *m)
{
	const struct refusals *r = &m->refusals;

	return r->count && !r->list[r->count - 1].retried ? &r->list[r->count - 1] : NULL;
}

void model_did_without(struct model *m)
{
	struct failure *f = host_failure_newest(&m->refusals);

	if (f && f->recovered)
		f->retried = true;
}
