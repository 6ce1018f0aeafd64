#include "model/heap/recording.h"

#include "trace/event.h"
#include "util/num.h"

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
	if (e->u.notice.mean > r->thinned_every)
		r->thinned_every = e->u.notice.mean;
}

void recording_note(struct recording *r, const struct event *e)
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

void recording_end(struct recording *r, uint64_t time_ns)
{
	on_pause(r, false, time_ns);
}
