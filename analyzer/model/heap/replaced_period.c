#include "model/heap/replaced_period.h"

#include "util/num.h"
#include "util/tuned.h"

TUNED(unsigned, EXCHANGED_PART, 4u,
    "of content that is exchanged more than a quarter of the survivors' bytes is gone");

void replaced_note(struct replaced *p, struct timeline *t, const struct event *e, uint64_t live,
    uint64_t mapped, uint64_t total)
{
	struct replaced_period q = {
	    .begin_ns = e->u.period.begin_ns,
	    .end_ns = e->time_ns,
	    .acquired = e->u.period.acquired,
	    .acquired_bytes = e->u.period.acquired_bytes,
	    .released = e->u.period.released,
	    .released_bytes = e->u.period.released_bytes,
	    .most_bytes = e->u.period.most_bytes,
	};
	uint64_t before = num_less(p->acquired_bytes, p->released_bytes), after, unseen;

	if (p->count < TRACE_CHECKPOINT_PERIODS)
		p->periods[p->count++] = q;
	p->trace_bytes = num_sum(p->trace_bytes, e->u.period.trace_bytes);
	p->left_out = num_sum(p->left_out, e->u.period.left_out);
	p->acquired = num_sum(p->acquired, q.acquired);
	p->acquired_bytes = num_sum(p->acquired_bytes, q.acquired_bytes);
	p->released = num_sum(p->released, q.released);
	p->released_bytes = num_sum(p->released_bytes, q.released_bytes);
	p->most_bytes = num_most(p->most_bytes, num_sum(q.most_bytes, mapped));
	unseen = num_less(q.acquired_bytes, num_less(total, p->seen_bytes));
	p->unseen_bytes = num_sum(p->unseen_bytes, unseen);
	p->seen_bytes = total;
	/* Live bytes at its end: some were freed in a later period, and have no event. */
	after = num_less(p->acquired_bytes, p->released_bytes);
	if (p->count && p->periods[p->count - 1].end_ns == q.end_ns)
		p->periods[p->count - 1].gone_bytes = num_less(after, live);
	timeline_at(t, e->time_ns, num_sum(live, mapped));
	timeline_replaced(t, &(struct timeline_replaced){.from_ns = q.begin_ns,
				 .until_ns = q.end_ns,
				 .live_from = num_sum(before, mapped),
				 .live_until = num_sum(after > live ? after : live, mapped),
				 .most = num_sum(q.most_bytes, mapped),
				 .acquired = unseen,
				 .released = q.released_bytes,
				 .events = num_less(q.acquired, 1)});
}

uint64_t replaced_work_ns(const struct replaced *p)
{
	return p && p->count ? p->periods[p->count - 1].begin_ns : 0;
}

bool replaced_kept(const struct replaced *p, uint64_t from_ns, uint64_t bytes)
{
	uint64_t until;
	uint32_t moments = 0, early = 0;

	if (p->count < 2)
		return false;
	/* the last period is the checkpoint's own: nothing is gone */
	until = p->periods[p->count - 1].end_ns;
	for (uint32_t i = 0; i + 1 < p->count; i++) {
		uint64_t at = p->periods[i].end_ns;

		/* before the first survivor, too: all of it may have been freed then, at once */
		if (p->periods[i].gone_bytes > bytes / EXCHANGED_PART)
			return false;
		moments += at > from_ns;
		/* content that is exchanged gradually would have lost a third */
		early += at > from_ns && until - at >= (until - from_ns) / 3;
	}
	return moments >= 2 && early;
}

uint64_t replaced_until_ns(const struct feed *feed)
{
	return feed->facts ? feed->facts(feed->self)->checkpoint.until_ns : 0;
}
