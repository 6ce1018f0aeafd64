/* host_failure.c - follows each burst of refused requests to its outcome. See host_failure.h. */
#include "model/heap/host_failure.h"

#include <string.h>

#include "model/model.h"
#include "util/num.h"
#include "util/text/str.h"
#include "util/tuned.h"

TUNED(unsigned, HALF_ROUND, 64u, "a half differs by what is rounded, or by the rest of a division");
TUNED(unsigned, BUILDUP_MOST, 2u, "what was released is a build-up when it was half of what lived");
TUNED(unsigned, BUILDUP_LITTLE, 8u, "less of other work comes before a retry");
TUNED(unsigned, BUILDUP_BEGUN, 32u,
    "an end in a retry cuts it off at any point; less may be other work");
TUNED(
    unsigned, AS_FULL_PART, 8u, "the memory counts as full again when as much lives, to an eighth");

/* Return the newest burst; NULL: nothing failed. */
static struct failure *newest(struct refusals *r)
{
	return r->count ? &r->list[r->count - 1] : NULL;
}

/* True if the process has acquired, since that refusal, as many bytes as lived then. */
static bool went_on(const struct model *m, const struct failure *f)
{
	return num_sum(m->total.bytes - f->until_bytes, f->periods_bytes) >
	       num_sum(f->until_live, f->size);
}

/* False for events from before the end of a checkpoint that replaced the refusal: until then only a
 * part of the blocks that lived is known. */
static bool is_told_by(const struct model *m, struct failure *f, const struct event *e)
{
	uint64_t past = replaced_until_ns(&m->feed), live = m->blocks.bytes + m->maps.bytes;

	if (f->until_replaced || f->time_ns > past)
		return true;
	if (e->time_ns <= past)
		return false;
	f->until_replaced = true;
	f->until_bytes = m->total.bytes;
	f->until_live = f->until_live > live ? f->until_live : live;
	f->after = m->total.count;
	return true;
}

/* Settle a refusal whose live blocks a checkpoint replaced: only the outcome is known. */
static void got_over(struct failure *f)
{
	f->recovered = true;
	f->retried |= f->until_replaced;
	f->settled |= f->until_replaced;
}

bool host_failure_is_half(uint64_t size, uint64_t whole)
{
	return num_about(size, whole / 2, HALF_ROUND);
}

/* True if enough was freed for the request to fit: a thread that still wants it would ask again. */
static bool is_given_up(const struct model *m, const struct failure *f)
{
	return num_sum(m->blocks.bytes + m->maps.bytes, f->size) <= f->until_live;
}

/* True if the refused thread is granted memory at the same stack before much other work: all of it;
 * or half of the last refused size; or less at once, as code does that takes what it can get. A
 * request that comes later, or after enough was released for it to fit, is other work. */
static bool is_granted(const struct model *m, const struct failure *f, const struct event *e)
{
	bool at_once = m->total.count - f->after <= HOST_FAILURE_RETRY && !is_given_up(m, f);

	return e->thread == f->thread &&
	       (e->size >= f->size || at_once || host_failure_is_half(e->size, f->least));
}

/* True if most live blocks came from that stack and were released: the refused request was part of
 * a build-up, such as a batch that is too large. */
static bool is_part_of_buildup(const struct failure *f)
{
	return f->released && f->released >= f->until_live / BUILDUP_MOST;
}

/* True if the thread builds up as much again. A thread that tries a smaller batch starts at once
 * and reaches half; a smaller request, or one after other work, is no retry. */
static bool is_built_up_again(struct failure *f, const struct event *e, uint64_t since)
{
	if (e->thread != f->thread)
		return false;
	f->rebuilt_over |=
	    f->rebuilt_fallen || (!f->rebuilt_most && since > f->released / BUILDUP_LITTLE);
	f->rebuilt = num_sum(f->rebuilt, e->size);
	f->rebuilt_most = num_most(f->rebuilt_most, f->rebuilt);
	return !f->rebuilt_over && f->rebuilt >= f->released / BUILDUP_MOST;
}

void host_failure_released(struct model *m, const struct event *e, uint32_t stack, uint64_t bytes)
{
	struct failure *f = newest(&m->refusals);

	if (e->thread != f->thread || stack != f->stack || !stack)
		return;
	if (!f->rebuilt_most) {
		f->released = num_sum(f->released, bytes);
		return;
	}
	f->rebuilt = num_less(f->rebuilt, bytes);
	f->rebuilt_fallen |= f->rebuilt < f->rebuilt_most / BUILDUP_MOST;
}

static bool same_function(const struct symbol *a, const struct symbol *b)
{
	return symbol_same_function(a, b) && str_same(a->module, b->module);
}

/* True for an allocator that stocks address space: after a refusal, the same function asks for
 * less, from another line, before it returns. A caller that handles the error has left the library
 * by then. */
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
	struct failure *f = newest(&m->refusals);
	bool same = e->stack == f->stack && e->stack;
	bool next = e->thread == f->thread && !f->own++;
	uint64_t since;

	if (!is_told_by(m, f, e))
		return;
	if (next && !f->settled && makes_do(m, f, e))
		f->settled = f->retried = true;
	since =
	    num_sum(num_less(m->total.bytes, num_sum(f->until_bytes, e->size)), f->periods_bytes);
	f->settled |= f->rebuilt_over || since > (is_part_of_buildup(f) ? f->released : f->size);
	if (same && !f->settled)
		f->settled = f->retried =
		    is_part_of_buildup(f) ? is_built_up_again(f, e, since) : is_granted(m, f, e);
	if (f->recovered)
		return;
	f->recovered =
	    f->retried ||
	    (same && (e->size >= f->size || m->total.count - f->after <= HOST_FAILURE_RETRY)) ||
	    went_on(m, f);
	if (f->recovered)
		got_over(f);
}

void host_failure_period(struct model *m, const struct event *e)
{
	struct failure *f = newest(&m->refusals);

	if (!f || f->recovered || f->time_ns > e->time_ns || f->until_replaced)
		return;
	if (f->time_ns > e->u.period.begin_ns) {
		f->until_live = num_most(f->until_live, e->u.period.most_bytes);
		return;
	}
	f->periods_bytes = num_sum(f->periods_bytes, e->u.period.acquired_bytes);
	if (f->periods_bytes > num_sum(f->until_live, f->size)) {
		f->until_replaced = true;
		got_over(f);
	}
}

static uint64_t granted_at(const struct model *m, uint32_t stack)
{
	const struct stack_stats *heap = stack_table_open(&m->stacks, stack, STACK_STATS_HEAP),
				 *map = stack_table_open(&m->stacks, stack, STACK_STATS_MAP);

	return (heap ? stack_stats_total_count(heap) : 0) +
	       (map ? stack_stats_total_count(map) : 0);
}

/* True if the same request is refused again, with no grant there in between and as many live bytes:
 * the process did other things, but the missing memory never came back. */
static bool is_still(const struct model *m, const struct failure *f, const struct event *e)
{
	return !f->retried && !f->until_replaced && e->stack && e->stack == f->stack &&
	       num_about(e->size, f->size, HALF_ROUND) &&
	       num_about(m->blocks.bytes + m->maps.bytes, f->live_bytes + f->live_map_bytes,
		   AS_FULL_PART) &&
	       granted_at(m, stack_table_id(e->stack)) == f->granted;
}

void host_failure_refused(struct model *m, const struct event *e)
{
	struct failure *f = newest(&m->refusals);

	m->refusals.requests++;
	if (f && f->recovered && is_still(m, f, e)) {
		f->recovered = false;
		f->until_bytes = m->total.bytes;
	}
	if (f && !f->recovered) {
		/* The first refusal of a burst matters: the others are its echo while the program
		 * unwinds, or another try of the same request at a lower level. */
		f->count++;
		if (e->thread == f->thread)
			f->own = 0;
		if (e->stack == f->stack)
			f->after = m->total.count;
		f->largest = num_most(f->largest, e->size);
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
	m->measured.at_failure = m->measured.levels;
	f = newest(&m->refusals);
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
	struct failure *f = newest(&m->refusals);

	if (!f)
		return;
	/* The retry was granted and under way when the process ended. */
	if (is_part_of_buildup(f) && f->rebuilt_most >= f->released / BUILDUP_BEGUN &&
	    !f->rebuilt_over && !f->settled)
		f->recovered = f->retried = true;
	/* The granted request may have been another worker's at the same point, while the refusal
	 * brought the process down. The process recovered only if it lived on. */
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
	struct failure *f = newest(&m->refusals);

	if (f && f->recovered)
		f->retried = true;
}
