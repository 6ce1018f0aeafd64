/* recorded.c - see recorded.h. */
#include "replay/recorded.h"

#include <stdlib.h>
#include <string.h>

#include "util/num.h"

static uint64_t level(const struct event *e, uint32_t key)
{
	uint64_t value = 0;

	event_level(e, key, &value);
	return value;
}

static int take(struct recorded *r, const struct event *e, uint64_t time_ns, struct err *err)
{
	struct recorded_sample s = {.time_ns = time_ns,
	    .resident = level(e, TRACE_LEVEL_RSS),
	    .anonymous = level(e, TRACE_LEVEL_RSS_ANON),
	    .size = level(e, TRACE_LEVEL_VSIZE),
	    .data = level(e, TRACE_LEVEL_DATA),
	    .beside = level(e, TRACE_LEVEL_VIRT_FILE) + level(e, TRACE_LEVEL_VIRT_SHARED) +
		      level(e, TRACE_LEVEL_VIRT_STACKS)};

	/* What was resident at most is no measure of that moment. */
	if (!s.resident && !s.size)
		return 0;
	if (vec_push(&r->samples, s))
		return err_set(err, -ENOMEM, "no memory for the recorded levels");
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct recorded_sample *x = a, *y = b;

	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

/* What is measured more seldom is as it was; before it was measured first, as then. */
static void carry(struct recorded *r)
{
	uint64_t beside = 0, files = 0;

	for (size_t i = 0; i < r->samples.count && (!beside || !files); i++) {
		const struct recorded_sample *s = &r->samples.items[i];

		beside = beside ? beside : s->beside;
		if (!files && s->anonymous)
			files = num_less(s->resident, s->anonymous);
	}
	for (size_t i = 0; i < r->samples.count; i++) {
		struct recorded_sample *s = &r->samples.items[i];

		if (s->beside)
			beside = s->beside;
		s->beside = beside;
		if (s->anonymous)
			files = num_less(s->resident, s->anonymous);
		else if (files)
			s->anonymous = num_less(s->resident, files);
	}
}

int recorded_read(struct feed feed, struct feed *supervisor, int64_t shift_ns, struct recorded *out,
    struct err *err)
{
	const struct trace_facts *facts = feed.facts(feed.self);
	/* Of the program that took the process over, nothing. */
	uint64_t until = facts->end_how == TRACE_END_EXEC ? facts->last_ns : UINT64_MAX;
	struct event e;
	int rc = feed.rewind(feed.self, err);

	memset(out, 0, sizeof(*out));
	while (!rc && (rc = feed.next(feed.self, &e, err)) == 1) {
		rc = 0;
		if ((e.kind == EV_LEVEL || e.kind == EV_FAILED) && e.space == TRACE_SPACE_HOST)
			rc = take(out, &e, e.time_ns, err);
	}
	if (!rc && supervisor)
		rc = supervisor->rewind(supervisor->self, err);
	while (supervisor && !rc && (rc = supervisor->next(supervisor->self, &e, err)) == 1) {
		int64_t at = (int64_t)e.time_ns + shift_ns;

		rc = 0;
		if (e.kind == EV_LEVEL && e.space == TRACE_SPACE_HOST &&
		    e.u.child.pid == facts->pid && at >= 0 && (uint64_t)at <= until)
			rc = take(out, &e, (uint64_t)at, err);
	}
	if (rc)
		return rc;
	qsort(out->samples.items, out->samples.count, sizeof(*out->samples.items), by_time);
	carry(out);
	return 0;
}

void recorded_fini(struct recorded *r)
{
	vec_free(&r->samples);
}
