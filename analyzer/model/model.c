/* model.c - see model.h: blocks and levels. Mappings are in maps.c, failures in host_failure.c. */
#include "model/model.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "model/heap/host_failure.h"
#include "model/heap/maps.h"
#include "model/space/space.h"
#include "util/num.h"

/* A larger block fits into no address space: damage, as with mappings. */
#define BLOCK_MAX (1ull << 57)
#define WENT_MAX (1ull << 54)

int model_new(struct feed feed, struct model **out, struct err *err)
{
	struct model *m = calloc(1, sizeof(*m));

	if (!m)
		return err_set(err, -ENOMEM, "no memory for the model");
	m->feed = feed;
	m->first_ns = UINT64_MAX;
	timeline_init(&m->timeline);
	ranges_init(&m->ranges);
	*out = m;
	return 0;
}

void model_free(struct model *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->stack_stats_count; i++)
		stack_stats_fini(model_stack_stats_number(m, i));
	model_stack_stats_list_close(m);
	for (size_t i = 0; i < m->batches.count; i++)
		free(m->batches.items[i]);
	vec_free(&m->batches);
	vec_free(&m->marked);
	spaces_free(m->spaces);
	free(m->undo);
	ranges_fini(&m->ranges);
	free(m);
}

/* Sites that have changed since the high-water mark are listed, to be found at the next one, up to
 * such a part of all; beyond that it is as well to look at all of them. */
#define MARKED_PART 16u
#define MARKED_LEAST 4096u

/* The high-water mark is now: no site has changed since. */
static void begin_peak(struct model *m)
{
	for (size_t i = 0; i < (m->marked_more ? m->stack_stats_count : 0); i++)
		model_stack_stats_number(m, i)->marked = false;
	for (size_t i = 0; i < m->marked.count; i++)
		m->marked.items[i]->marked = false;
	m->marked.count = 0;
	m->marked_more = false;
}

/* Before a site changes: what it held at the two moments that may be asked for is kept. */
int model_touch(struct model *m, struct stack_stats *s)
{
	if (!s->marked) {
		stack_stats_mark_peak(s);
		if (m->marked.count >= m->stack_stats_count / MARKED_PART + MARKED_LEAST)
			m->marked_more = true;
		else if (vec_push(&m->marked, s))
			return -ENOMEM;
	}
	if (m->failure_epoch && !stack_stats_frozen(s, m->failure_epoch))
		return stack_stats_freeze(s, m->failure_epoch);
	return 0;
}

/* After an acquisition, by blocks or mappings. */
void model_acquired(struct model *m, uint64_t time_ns, uint64_t size, uint64_t live_before)
{
	uint64_t live = m->live_bytes + m->map_bytes;
	struct period *p;

	if (m->sums)
		return;
	p = timeline_at(&m->timeline, time_ns, live_before);
	p->events++;
	p->acquired += size;
	p->last = live;
	p->last_ns = time_ns;
	if (live > p->most)
		p->most = live;
	if (live > m->peak_bytes) {
		m->peak_bytes = live;
		m->peak_map_bytes = m->map_bytes;
		m->peak_shared_bytes = m->map_shared_bytes;
		m->peak_ns = time_ns;
		m->peak_serial = m->serial;
		begin_peak(m);
	}
	m->total_bytes += size;
	m->total_count++;
	peak_trend_note(&m->rise, m->total_bytes + m->past.unseen_bytes, m->peak_bytes);
}

void model_released(struct model *m, uint64_t time_ns, uint64_t size, uint64_t live_before)
{
	uint64_t live = m->live_bytes + m->map_bytes;
	struct period *p;

	if (m->sums)
		return;
	p = timeline_at(&m->timeline, time_ns, live_before);
	p->events++;
	p->released += size;
	p->last = live;
	p->last_ns = time_ns;
	if (live < p->least)
		p->least = live;
}

/* What the block stands for. */
static inline struct alike alike_of(const struct block *b)
{
	if (__builtin_expect(b->mean > 0, 0))
		return (struct alike){b->size, block_count(b), block_bytes(b), block_variance(b)};
	return ALIKE_ONE(b->size);
}

/* The sums, and who listens to them. */
static void block_lives(
    struct model *m, const struct block *b, struct alike blocks, uint64_t time_ns)
{
	m->live_bytes += blocks.bytes;
	m->live_count += blocks.count;
	m->live_variance += blocks.variance;
	if (m->observer.arg)
		m->observer.acquired(
		    m->observer.arg, model_stack_of(b->stack), STACK_STATS_HEAP, blocks, time_ns);
}

static void block_died(
    struct model *m, const struct block *b, struct alike blocks, uint64_t time_ns)
{
	m->live_bytes = num_less(m->live_bytes, blocks.bytes);
	m->live_count = num_less(m->live_count, blocks.count);
	m->live_variance = m->live_bytes ? m->live_variance - blocks.variance : 0;
	if (m->observer.arg)
		m->observer.released(m->observer.arg, model_stack_of(b->stack), STACK_STATS_HEAP,
		    blocks, b->birth_ns, time_ns);
}

static int on_alloc(struct model *m, const struct event *e)
{
	const struct block *b = e->block;
	uint64_t before = m->live_bytes + m->map_bytes;
	struct alike blocks;
	struct stack_stats *s;
	int rc;

	if (!b || b->size > BLOCK_MAX)
		return 0;
	blocks = alike_of(b);
	s = model_stack_stats_open(m, b->stack, STACK_STATS_HEAP);
	if (!s && (rc = model_stack_stats_of(m, b->stack, STACK_STATS_HEAP, &s)))
		return rc;
	if ((rc = model_touch(m, s)) ||
	    (rc = stack_stats_acquire(s, b->serial, e->time_ns, blocks)))
		return rc;
	block_lives(m, b, blocks, e->time_ns);
	m->block_serial = b->serial;
	if (b->serial > m->serial)
		m->serial = b->serial;
	model_acquired(m, e->time_ns, blocks.bytes, before);
	if (e->old && b->size > e->old->size)
		stack_stats_regrow(
		    s, e->old->serial, e->old->size, b->serial, b->size, m->total_bytes);
	if (host_failure_is_open(m))
		host_failure_acquired(m, e);
	return 0;
}

/* Known as a sum: its site's history, not the process's, which has the sums of its periods. */
static int on_went(struct model *m, const struct event *e)
{
	struct stack_stats *s;
	int rc;

	if (!e->u.went.count || e->u.went.count > WENT_MAX || e->u.went.bytes > WENT_MAX ||
	    e->size > e->u.went.bytes)
		return 0;
	if ((rc = model_stack_stats_of(m, e->stack, STACK_STATS_HEAP, &s)) ||
	    (rc = model_touch(m, s)))
		return rc;
	m->went.count = num_sum(m->went.count, e->u.went.count);
	m->went.bytes = num_sum(m->went.bytes, e->u.went.bytes);
	return stack_stats_went(s, m->block_serial + 1, e->time_ns,
	    (struct alike){e->size, e->u.went.count, e->u.went.bytes, 0}, e->u.went.life_ns,
	    e->u.went.longest_ns);
}

static int on_free(struct model *m, const struct event *e, bool undo)
{
	const struct block *b = e->block;
	uint64_t before = m->live_bytes + m->map_bytes;
	struct alike blocks;
	struct stack_stats *s;
	int rc;

	if (!b) {
		m->unmatched++;
		return 0;
	}
	if (b->size > BLOCK_MAX)
		return 0;
	s = model_stack_stats_open(m, b->stack, STACK_STATS_HEAP);
	if (!s && (rc = model_stack_stats_of(m, b->stack, STACK_STATS_HEAP, &s)))
		return rc;
	if ((rc = model_touch(m, s)))
		return rc;
	blocks = alike_of(b);
	if (undo) {
		stack_stats_restore(s, b->serial, b->birth_ns, e->time_ns, blocks);
		block_lives(m, b, blocks, e->time_ns);
		model_acquired(m, e->time_ns, 0, before);
		m->total_count--;
		return 0;
	}
	stack_stats_release(s, b->serial, b->birth_ns, e->time_ns, blocks, true);
	if (!(e->flags & EVENT_REALLOC))
		stack_stats_end(s, b->serial, blocks, e->time_ns - b->birth_ns);
	block_died(m, b, blocks, e->time_ns);
	model_released(m, e->time_ns, blocks.bytes, before);
	if (host_failure_is_open(m))
		host_failure_released(m, e, model_stack_of(b->stack), blocks.bytes);
	return 0;
}

static void note_inherited(struct model *m, const struct event *e)
{
	uint64_t anonymous;

	if (m->inherited_known || !event_level(e, TRACE_LEVEL_RSS_ANON, &anonymous))
		return;
	m->inherited_known = true;
	if (m->feed.facts && m->feed.facts(m->feed.self)->forked)
		m->inherited_bytes = num_less(anonymous, m->live_bytes + m->map_bytes);
}

static void take_levels(struct model *m, const struct event *e)
{
	allocator_stats_note(&m->allocator_stats, e,
	    &(struct answer){.live_bytes = m->live_bytes,
		.live_count = m->live_count,
		.live_variance = m->live_variance,
		.acquired = m->total_bytes});
	allocator_stats_note_arenas(&m->arenas, e);
	for (uint32_t i = 0; i < e->level_count; i++) {
		const struct event_level *l = &e->levels[i];

		levels_set(&m->levels, l->key, l->value, e->time_ns);
		if (l->key == TRACE_LEVEL_RSS)
			m->at_rss = (struct model_at_rss){
			    e->time_ns, m->live_bytes + m->map_bytes, m->map_shared_bytes};
		if (l->key == TRACE_LEVEL_RSS && l->value > m->peak_rss)
			m->peak_rss = l->value;
		if ((l->key == TRACE_LEVEL_VSIZE || l->key == TRACE_LEVEL_VSIZE_PEAK) &&
		    l->value > m->peak_vsize)
			m->peak_vsize = l->value;
	}
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

static void on_pause(struct model *m, bool begins, uint64_t time_ns)
{
	if (m->paused_since_ns)
		m->paused_ns += num_less(time_ns, m->paused_since_ns);
	m->paused_since_ns = begins ? time_ns + !time_ns : 0;
}

static void on_coarser(struct model *m, const struct event *e)
{
	m->coarser_times++;
	if (e->u.notice.mean > m->coarsest_every) {
		m->coarsest_every = e->u.notice.mean;
		m->coarsest_exact_from = e->u.notice.exact_from;
	}
}

static void on_thinned(struct model *m, const struct event *e)
{
	m->thinned_times++;
	m->thinned_blocks += e->u.notice.value;
	if (e->u.notice.mean > m->thinned_every)
		m->thinned_every = e->u.notice.mean;
}

static int apply(struct model *m, const struct event *e)
{
	int rc = 0;

	m->others += !is_block(e);
	if (e->time_ns < m->first_ns)
		m->first_ns = e->time_ns;
	if (e->time_ns > m->last_ns)
		m->last_ns = e->time_ns;
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
			take_levels(m, e);
		if (!rc && host_failure_is_open(m))
			host_failure_acquired(m, e);
		break;
	case EV_UNMAP:
		rc = maps_on_unmap(m, e);
		break;
	case EV_UNUNMAP:
		rc = maps_on_ununmap(m, e);
		break;
	case EV_BRK:
		if (e->u.brk.new_end >= e->u.brk.old_end)
			m->break_bytes += e->u.brk.new_end - e->u.brk.old_end;
		else if (m->break_bytes >= e->u.brk.old_end - e->u.brk.new_end)
			m->break_bytes -= e->u.brk.old_end - e->u.brk.new_end;
		break;
	case EV_FAILED:
		if (e->space == TRACE_SPACE_HOST) {
			take_levels(m, e);
			host_failure_refused(m, e);
			shm_note(&m->shm, e);
		} else {
			rc = spaces_apply(m, e);
		}
		break;
	case EV_LEVEL:
		if (e->space == TRACE_SPACE_HOST) {
			uint64_t live = m->live_bytes + m->map_bytes, rss;

			note_inherited(m, e);
			take_levels(m, e);
			shm_note(&m->shm, e);
			if (live >= m->levels_peak_live) {
				m->levels_peak = m->levels;
				m->levels_peak_live = live;
			}
			if (levels_get(&m->levels, TRACE_LEVEL_RSS, &rss)) {
				struct period *p = timeline_at(&m->timeline, e->time_ns, live);
				if (rss > p->rss)
					p->rss = rss;
			}
		} else {
			rc = spaces_apply(m, e);
		}
		break;
	case EV_EXIT:
		m->exited = true;
		m->exit_code = e->u.end.code;
		break;
	case EV_SIGNAL:
		m->signalled = true;
		m->signal = e->u.end.code;
		break;
	case EV_NOTICE:
		if (e->u.notice.what == TRACE_NOTICE_BUDGET)
			m->budget = true;
		else if (e->u.notice.what == TRACE_NOTICE_LOST)
			m->lost += e->u.notice.value;
		else if (e->u.notice.what == TRACE_NOTICE_PAUSE)
			on_pause(m, e->u.notice.value != 0, e->time_ns);
		else if (e->u.notice.what == TRACE_NOTICE_RATE &&
			 e->u.notice.mean > m->coarse_every)
			on_coarser(m, e);
		else if (e->u.notice.what == TRACE_NOTICE_THINNED)
			on_thinned(m, e);
		if (e->u.notice.mean)
			m->coarse_every = e->u.notice.mean;
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
		rc = e->space == TRACE_SPACE_HOST ? on_went(m, e) : spaces_apply(m, e);
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
		    &m->past, &m->timeline, e, m->live_bytes, m->map_bytes, m->total_bytes);
		host_failure_period(m, e);
		break;
	}
	if (!rc && m->witness.block && is_block(e))
		rc = m->witness.block(m->witness.arg, e);
	return rc;
}

int model_apply(struct model *m, const struct event *e, struct err *err)
{
	int rc;

	/* Not the process's doing, nor does it say that the process still ran. */
	if (e->kind == EV_OUTSIDE)
		return m->sums ? 0 : spaces_outside(m, e);
	m->events++;
	rc = m->sums ? apply_sums(m, e) : apply(m, e);
	if (rc)
		return err_set(err, rc, "no memory for the model after %llu events",
		    (unsigned long long)m->events);
	return 0;
}

void model_finish(struct model *m)
{
	if (m->first_ns == UINT64_MAX)
		m->first_ns = 0;
	on_pause(m, false, m->last_ns);
	host_failure_end(m);
	spaces_finish(m->spaces, m->signalled || (m->exited && m->exit_code));
	model_stack_stats_list_close(m);
	vec_free(&m->marked);
}

const struct stack_stats *model_stack_stats(const struct model *m, const struct stack_stats *s,
    enum moment at, uint64_t *live_bytes, uint64_t *live_count)
{
	const struct stack_stats *of =
	    at == AT_FAILURE && m->failure_epoch ? stack_stats_frozen(s, m->failure_epoch) : NULL;

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

const struct failure *model_failure(const struct model *m)
{
	if (!m->failure_count || m->failures[m->failure_count - 1].retried)
		return NULL;
	return &m->failures[m->failure_count - 1];
}

void model_did_without(struct model *m)
{
	struct failure *f = host_failure_newest(m);

	if (f && f->recovered)
		f->retried = true;
}

void model_check(const struct model *m)
{
	uint64_t heap = 0, maps = 0, blocks = 0, peak = 0;

	for (size_t i = 0; i < m->stack_stats_count; i++) {
		const struct stack_stats *s = model_stack_stats_number(m, i);
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
	assert(heap == m->live_bytes);
	assert(blocks == m->live_count);
	assert(maps == m->map_bytes);
	assert(peak == m->peak_bytes);
	assert(m->timeline.used <= TIMELINE_PERIODS);
	(void)heap, (void)maps, (void)blocks, (void)peak;
}
