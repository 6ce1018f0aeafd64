/* model.c - blocks, and the recorder's notes. Mappings are in maps.c, failures in host_failure.c.
 * See model.h. */
#include "model/model.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "model/space/space.h"
#include "util/num.h"
#include "util/progress.h"

/* A larger block fits into no address space: damage, as with mappings. */
#define BLOCK_MAX (1ull << 57)
#define FREED_STATS_MAX (1ull << 54)

int model_new(struct feed feed, struct model **out, struct err *err)
{
	struct model *m = calloc(1, sizeof(*m));

	if (!m)
		return err_set(err, -ENOMEM, "no memory for the model");
	m->feed = feed;
	m->run.first_ns = UINT64_MAX;
	timeline_init(&m->timeline);
	maps_init(&m->maps);
	base_begin(m);
	*out = m;
	return 0;
}

void model_free(struct model *m)
{
	if (!m)
		return;
	stack_table_fini(&m->stacks);
	spaces_free(m->spaces);
	maps_fini(&m->maps);
	free(m);
}

int model_touch(struct model *m, struct stack_stats *s)
{
	int rc = stack_table_touch(&m->stacks, s);

	if (!rc && m->refusals.epoch && !stack_stats_frozen(s, m->refusals.epoch))
		rc = stack_stats_freeze(s, m->refusals.epoch);
	return rc;
}

void model_acquired(struct model *m, uint64_t time_ns, uint64_t size, uint64_t live_before)
{
	uint64_t live = m->blocks.bytes + m->maps.bytes;

	if (m->options.sums)
		return;
	timeline_acquire(&m->timeline, time_ns, live_before, live, size);
	if (live > m->peak.bytes) {
		m->peak = (struct peak){.bytes = live,
		    .time_ns = time_ns,
		    .serial = m->run.serial,
		    .map_bytes = m->maps.bytes,
		    .shared_bytes = m->maps.charged_shared_bytes};
		stack_table_peak(&m->stacks);
	}
	m->total.bytes += size;
	m->total.count++;
	peak_trend_note(&m->peak_trend, m->total.bytes + m->replaced.unseen_bytes, m->peak.bytes);
}

void model_released(struct model *m, uint64_t time_ns, uint64_t size, uint64_t live_before)
{
	if (!m->options.sums)
		timeline_release(
		    &m->timeline, time_ns, live_before, m->blocks.bytes + m->maps.bytes, size);
}

/* Return the blocks that this one stands for. */
static inline struct alike alike_of(const struct block *b)
{
	if (__builtin_expect(b->mean > 0, 0))
		return (struct alike){b->size, block_count(b), block_bytes(b), block_variance(b)};
	return ALIKE_ONE(b->size);
}

static void block_lives(
    struct model *m, const struct block *b, struct alike blocks, uint64_t time_ns)
{
	m->blocks.bytes += blocks.bytes;
	m->blocks.count += blocks.count;
	m->blocks.variance += blocks.variance;
	if (m->options.observer.arg)
		m->options.observer.acquired(m->options.observer.arg, stack_table_id(b->stack),
		    STACK_STATS_HEAP, blocks, time_ns);
}

static void block_died(
    struct model *m, const struct block *b, struct alike blocks, uint64_t time_ns)
{
	m->blocks.bytes = num_less(m->blocks.bytes, blocks.bytes);
	m->blocks.count = num_less(m->blocks.count, blocks.count);
	m->blocks.variance = m->blocks.bytes ? m->blocks.variance - blocks.variance : 0;
	if (m->options.observer.arg)
		m->options.observer.released(m->options.observer.arg, stack_table_id(b->stack),
		    STACK_STATS_HEAP, blocks, b->birth_ns, time_ns);
}

static int on_alloc(struct model *m, const struct event *e)
{
	const struct block *b = e->block;
	uint64_t before = m->blocks.bytes + m->maps.bytes;
	struct alike blocks;
	struct stack_stats *s;
	int rc;

	if (!b || b->size > BLOCK_MAX)
		return 0;
	blocks = alike_of(b);
	s = stack_table_open(&m->stacks, b->stack, STACK_STATS_HEAP);
	if (!s && (rc = stack_table_get(&m->stacks, b->stack, STACK_STATS_HEAP, &s)))
		return rc;
	if ((rc = model_touch(m, s)) ||
	    (rc = stack_stats_acquire(s, b->serial, e->time_ns, blocks)))
		return rc;
	block_lives(m, b, blocks, e->time_ns);
	m->run.block_serial = b->serial;
	if (b->serial > m->run.serial)
		m->run.serial = b->serial;
	model_acquired(m, e->time_ns, blocks.bytes, before);
	if (e->old && b->size > e->old->size)
		stack_stats_regrow(
		    s, e->old->serial, e->old->size, b->serial, b->size, m->total.bytes);
	if (host_failure_is_open(&m->refusals))
		host_failure_acquired(m, e);
	return 0;
}

/* Apply a sum: it belongs to its stack's history. The process's own sums come with its periods. */
static int on_freed_stats(struct model *m, const struct event *e)
{
	struct stack_stats *s;
	int rc;

	if (!e->u.went.count || e->u.went.count > FREED_STATS_MAX ||
	    e->u.went.bytes > FREED_STATS_MAX || e->size > e->u.went.bytes)
		return 0;
	if ((rc = stack_table_get(&m->stacks, e->stack, STACK_STATS_HEAP, &s)) ||
	    (rc = model_touch(m, s)))
		return rc;
	m->total.freed_stats.count = num_sum(m->total.freed_stats.count, e->u.went.count);
	m->total.freed_stats.bytes = num_sum(m->total.freed_stats.bytes, e->u.went.bytes);
	return stack_stats_add_freed(s, m->run.block_serial + 1, e->time_ns,
	    (struct alike){e->size, e->u.went.count, e->u.went.bytes, 0}, e->u.went.life_ns,
	    e->u.went.longest_ns);
}

static int on_free(struct model *m, const struct event *e, bool undo)
{
	const struct block *b = e->block;
	uint64_t before = m->blocks.bytes + m->maps.bytes;
	struct alike blocks;
	struct stack_stats *s;
	int rc;

	if (!b) {
		m->run.unmatched++;
		return 0;
	}
	if (b->size > BLOCK_MAX)
		return 0;
	s = stack_table_open(&m->stacks, b->stack, STACK_STATS_HEAP);
	if (!s && (rc = stack_table_get(&m->stacks, b->stack, STACK_STATS_HEAP, &s)))
		return rc;
	if ((rc = model_touch(m, s)))
		return rc;
	blocks = alike_of(b);
	if (undo) {
		stack_stats_restore(s, b->serial, b->birth_ns, e->time_ns, blocks);
		block_lives(m, b, blocks, e->time_ns);
		model_acquired(m, e->time_ns, 0, before);
		m->total.count--;
		return 0;
	}
	stack_stats_release(s, b->serial, b->birth_ns, e->time_ns, blocks, true);
	if (!(e->flags & EVENT_REALLOC))
		stack_stats_end(s, b->serial, blocks, e->time_ns - b->birth_ns);
	block_died(m, b, blocks, e->time_ns);
	model_released(m, e->time_ns, blocks.bytes, before);
	if (host_failure_is_open(&m->refusals))
		host_failure_released(m, e, stack_table_id(b->stack), blocks.bytes);
	return 0;
}

static void on_pause(struct recording *r, bool begins, uint64_t time_ns)
{
	if (r->paused_since_ns)
		r->paused_ns += num_less(time_ns, r->paused_since_ns);
	r->paused_since_ns = begins ? time_ns + !time_ns : 0;
}

static void on_coarser(struct recording *r, const struct event *e)
{
	r->coarser_times++;
	if (e->u.notice.mean > r->coarsest_every) {
		r->coarsest_every = e->u.notice.mean;
		r->coarsest_exact_from = e->u.notice.exact_from;
	}
}

static void on_thinned(struct recording *r, const struct event *e)
{
	r->thinned_times++;
	r->thinned_blocks += e->u.notice.value;
	r->thinned_every = num_most(r->thinned_every, e->u.notice.mean);
}

/* Apply EV_NOTICE. */
static void on_notice(struct recording *r, const struct event *e)
{
	if (e->u.notice.what == TRACE_NOTICE_BUDGET)
		r->budget = true;
	else if (e->u.notice.what == TRACE_NOTICE_LOST)
		r->lost += e->u.notice.value;
	else if (e->u.notice.what == TRACE_NOTICE_PAUSE)
		on_pause(r, e->u.notice.value != 0, e->time_ns);
	else if (e->u.notice.what == TRACE_NOTICE_RATE && e->u.notice.mean > r->coarse_every)
		on_coarser(r, e);
	else if (e->u.notice.what == TRACE_NOTICE_THINNED)
		on_thinned(r, e);
	if (e->u.notice.mean)
		r->coarse_every = e->u.notice.mean;
}

static bool is_block(const struct event *e)
{
	return e->kind == EV_ALLOC || e->kind == EV_FREE || e->kind == EV_UNFREE;
}

static int apply_sums(struct model *m, const struct event *e)
{
	const struct block *b = e->block;

	switch (e->kind) {
	case EV_ALLOC:
	case EV_UNFREE:
		if (b && b->size <= BLOCK_MAX)
			block_lives(m, b, alike_of(b), e->time_ns);
		return 0;
	case EV_FREE:
		if (b && b->size <= BLOCK_MAX)
			block_died(m, b, alike_of(b), e->time_ns);
		return 0;
	case EV_MAP:
		return maps_on_map(m, e);
	case EV_UNMAP:
		return maps_on_unmap(m, e);
	case EV_UNUNMAP:
		return maps_on_ununmap(m, e);
	default:
		return 0;
	}
}

static int apply(struct model *m, const struct event *e)
{
	int rc = 0;

	m->run.others += !is_block(e);
	if (e->time_ns < m->run.first_ns)
		m->run.first_ns = e->time_ns;
	if (e->time_ns > m->run.last_ns)
		m->run.last_ns = e->time_ns;
	switch (e->kind) {
	case EV_ALLOC:
		rc = on_alloc(m, e);
		break;
	case EV_FREE:
		rc = on_free(m, e, false);
		break;
	case EV_UNFREE:
		rc = on_free(m, e, true);
		break;
	case EV_MAP:
		rc = maps_on_map(m, e);
		if (e->level_count)
			measured_note(m, e);
		if (!rc && host_failure_is_open(&m->refusals))
			host_failure_acquired(m, e);
		break;
	case EV_UNMAP:
		rc = maps_on_unmap(m, e);
		break;
	case EV_UNUNMAP:
		rc = maps_on_ununmap(m, e);
		break;
	case EV_BRK:
		maps_on_brk(&m->maps, e);
		break;
	case EV_FAILED:
		if (e->space == TRACE_SPACE_HOST) {
			measured_note(m, e);
			host_failure_refused(m, e);
			shm_note(&m->shm, e);
		} else {
			rc = spaces_apply(m, e);
		}
		break;
	case EV_LEVEL:
		if (e->space == TRACE_SPACE_HOST) {
			measured_sample(m, e);
			shm_note(&m->shm, e);
		} else {
			rc = spaces_apply(m, e);
		}
		break;
	case EV_EXIT:
		/* After a detach the process goes on. */
		m->run.exited = e->u.end.how != TRACE_END_DETACHED;
		m->run.exit_code = e->u.end.code;
		break;
	case EV_SIGNAL:
		m->run.signalled = true;
		m->run.signal = e->u.end.code;
		break;
	case EV_NOTICE:
		on_notice(&m->recording, e);
		break;
	case EV_SPACE_ALLOC:
	case EV_SPACE_FREE:
	case EV_SPACE_UNFREE:
	case EV_SPACE_MAP:
	case EV_SPACE_UNMAP:
	case EV_SPACE_UNUNMAP:
	case EV_SPACE_CLEAR:
	case EV_SPACE_CALL:
		rc = spaces_apply(m, e);
		break;
	case EV_WENT:
		rc = e->space == TRACE_SPACE_HOST ? on_freed_stats(m, e) : spaces_apply(m, e);
		break;
	case EV_OUTSIDE: /* handled above */
	case EV_ADVISE:
	case EV_THREAD_EXIT:
	case EV_FORK:
	case EV_CHILD_END:
	case EV_MARK:
	case EV_TASK_END:
		break;
	case EV_CHECKPOINT:
		replaced_note(
		    &m->replaced, &m->timeline, e, m->blocks.bytes, m->maps.bytes, m->total.bytes);
		host_failure_period(m, e);
		break;
	}
	if (!rc && m->options.witness.block && is_block(e))
		rc = m->options.witness.block(m->options.witness.arg, e);
	return rc;
}

int model_apply(struct model *m, const struct event *e, struct err *err)
{
	int rc;

	/* An event from outside does not show that the process still ran. */
	if (e->kind == EV_OUTSIDE)
		return m->options.sums ? 0 : spaces_outside(m, e);
	m->run.events++;
	rc = m->options.sums ? apply_sums(m, e) : apply(m, e);
	if (rc)
		return err_set(err, rc, "no memory for the model after %llu events",
		    (unsigned long long)m->run.events);
	return 0;
}

void model_ahead(struct model *m, const struct event *e)
{
	m->ahead = (struct ahead){.any = e && is_block(e) && e->block};
	if (m->ahead.any) {
		m->ahead.kind = e->kind;
		m->ahead.block = *e->block;
	}
}

void model_finish(struct model *m)
{
	if (m->run.first_ns == UINT64_MAX)
		m->run.first_ns = 0;
	on_pause(&m->recording, false, m->run.last_ns);
	host_failure_end(m);
	spaces_finish(m->spaces, m->run.signalled || (m->run.exited && m->run.exit_code));
	stack_table_close(&m->stacks);
}

static int read_until(
    struct feed feed, uint64_t others, uint64_t ns, struct model **out, struct err *err)
{
	struct model *m;
	struct event e;
	uint64_t events = 0;
	int rc = model_new(feed, &m, err);

	feed_progress(&feed, "reading until the moment");
	while (rc == 0 && m->run.others < others && (rc = feed.next(feed.self, &e, err)) == 1) {
		rc = 0;
		if (e.time_ns > ns) {
			model_ahead(m, &e);
			break;
		}
		rc = model_apply(m, &e, err);
		feed_passed(&feed, ++events);
	}
	progress_end();
	if (rc < 0) {
		model_free(m);
		return rc;
	}
	model_finish(m);
	*out = m;
	return 0;
}

int feed_until_model(
    struct feed feed, uint64_t others, uint64_t ns, struct model **out, struct err *err)
{
	int rc = feed.rewind(feed.self, err);

	return rc ? rc : read_until(feed, others, ns, out, err);
}

int feed_until_spaces(struct feed feed, uint64_t others, struct model **out, struct err *err)
{
	int rc = feed_rewind_spaces(&feed, err);

	return rc ? rc : read_until(feed, others, UINT64_MAX, out, err);
}

const struct stack_stats *model_stack_stats(const struct model *m, const struct stack_stats *s,
    enum moment at, uint64_t *live_bytes, uint64_t *live_count)
{
	const struct stack_stats *of =
	    at == AT_FAILURE && m->refusals.epoch ? stack_stats_frozen(s, m->refusals.epoch) : NULL;

	of = of ? of : s;
	*live_bytes = stack_stats_live_bytes(of);
	*live_count = stack_stats_live_count(of);
	if (at == AT_PEAK && s->marked)
		stack_stats_at_peak(s, live_bytes, live_count);
	return of;
}

double model_stack_stats_variance(
    const struct model *m, const struct stack_stats *s, enum moment at)
{
	uint64_t bytes, count;

	if (at == AT_PEAK && s->marked)
		return stack_stats_rare(s)->peak_live_variance;
	s = model_stack_stats(m, s, at, &bytes, &count);
	return stack_stats_rare(s)->live_variance;
}

void model_check(const struct model *m)
{
	uint64_t heap = 0, maps = 0, blocks = 0, peak = 0;

	for (size_t i = 0; i < m->stacks.count; i++) {
		const struct stack_stats *s = stack_table_number(&m->stacks, i);
		uint64_t bytes = 0, freed = 0, serial = 0, live_bytes, live_count;

		for (uint32_t c = 0, used = stack_stats_used(s); c < used; c++) {
			struct cohort own;
			const struct cohort *cohort = stack_stats_cohort(s, c, &own);

			bytes += cohort->bytes;
			freed += cohort->freed_bytes;
			assert(cohort->freed_count <= cohort->count);
			assert(!c || serial <= cohort->serial);
			serial = cohort->serial;
		}
		assert(bytes == stack_stats_total_bytes(s));
		assert(bytes - freed == stack_stats_live_bytes(s));
		(void)bytes, (void)freed, (void)serial;
		if (s->kind == STACK_STATS_HEAP) {
			heap += stack_stats_live_bytes(s);
			blocks += stack_stats_live_count(s);
		} else if (model_counts(m, s->kind)) {
			maps += stack_stats_live_bytes(s);
		}
		model_stack_stats(m, s, AT_PEAK, &live_bytes, &live_count);
		if (model_counts(m, s->kind))
			peak += live_bytes;
	}
	assert(heap == m->blocks.bytes);
	assert(blocks == m->blocks.count);
	assert(maps == m->maps.bytes);
	assert(peak == m->peak.bytes);
	assert(m->timeline.used <= TIMELINE_PERIODS);
	(void)heap, (void)maps, (void)blocks, (void)peak;
}
