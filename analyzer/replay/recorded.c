/* recorded.c - see recorded.h. */
#include "replay/recorded.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "util/num.h"
#include "util/progress.h"
#include "util/tuned.h"

/* A part of the anonymous memory, and at least this many bytes, may be private pages of files. */
TUNED(uint64_t, FILES_PART, 32, "relocated data of libraries, as an upper estimate");
TUNED(uint64_t, FILES_MIN, 256u << 10, "libc, the loader and the program have that much");

/* Returns RLIMIT_AS or RLIMIT_DATA if the event has limits: the process adds them when it measures
 * all, the supervisor when it reads the shares of pages. UINT64_MAX: unlimited. */
static uint64_t limit(const struct event *e, uint32_t key, bool own)
{
	uint64_t value = 0;

	if (!event_level(e, own ? TRACE_LEVEL_DATA : TRACE_LEVEL_PSS, &value))
		return 0;
	return event_level(e, key, &value) ? value : UINT64_MAX;
}

static struct recorded_sample sample_of(const struct event *e, bool own)
{
	return (struct recorded_sample){.resident = event_level_value(e, TRACE_LEVEL_RSS),
	    .anonymous = event_level_value(e, TRACE_LEVEL_RSS_ANON),
	    .peak = event_level_value(e, TRACE_LEVEL_RSS_PEAK),
	    .size = event_level_value(e, TRACE_LEVEL_VSIZE),
	    .data = event_level_value(e, TRACE_LEVEL_DATA),
	    .beside = event_level_value(e, TRACE_LEVEL_VIRT_FILE) +
		      event_level_value(e, TRACE_LEVEL_VIRT_SHARED) +
		      event_level_value(e, TRACE_LEVEL_VIRT_STACKS),
	    .limit_as = limit(e, TRACE_LEVEL_LIMIT_AS, own),
	    .limit_data = limit(e, TRACE_LEVEL_LIMIT_DATA, own)};
}

/* Adds a sample. Files other than shared memory do not count: the kernel reclaims them. */
static int take(struct recorded *r, const struct event *e, struct recorded_sample s,
    uint64_t time_ns, struct err *err)
{
	s.time_ns = time_ns;
	s.group = event_level_value(e, TRACE_LEVEL_CG_CURRENT);
	s.files = num_less(
	    event_level_value(e, TRACE_LEVEL_CG_FILE), event_level_value(e, TRACE_LEVEL_CG_SHMEM));
	s.machine = num_less(event_level_value(e, TRACE_LEVEL_SYS_TOTAL),
	    event_level_value(e, TRACE_LEVEL_SYS_AVAILABLE));
	/* The peak of resident memory alone measures no moment. */
	if (!s.resident && !s.size && !s.group && !s.machine)
		return 0;
	if (vec_push(&r->samples, s))
		return err_set(err, -ENOMEM, "no memory for the recorded levels");
	return 0;
}

/* There are at least as many stacks as threads: some are kept for new threads. */
static void take_stack(struct recorded *r, const struct event *e)
{
	uint64_t threads = event_level_value(e, TRACE_LEVEL_THREADS),
		 stacks = event_level_value(e, TRACE_LEVEL_VIRT_THREADS);

	if (threads < 2 || !stacks)
		return;
	stacks /= threads - 1;
	if (!r->thread_stack || stacks < r->thread_stack)
		r->thread_stack = stacks;
}

static void take_peak(struct recorded *r, const struct event *e, uint64_t *until_now)
{
	uint64_t peak = event_level_value(e, TRACE_LEVEL_RSS_PEAK);

	if (!peak)
		return;
	r->most = peak > r->most ? peak : r->most;
	r->peak_before = *until_now;
	r->end_peak = peak > *until_now ? peak : 0;
	*until_now = peak;
}

static int by_time(const void *a, const void *b)
{
	const struct recorded_sample *x = a, *y = b;

	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

/* Fills the gaps of a value with the last measured one, or at first with the next. */
static void carry(struct recorded *r, size_t field)
{
	uint64_t last = 0;

	for (size_t i = 0; i < r->samples.count && !last; i++)
		last = *(const uint64_t *)((const char *)&r->samples.items[i] + field);
	for (size_t i = 0; i < r->samples.count; i++) {
		uint64_t *value = (uint64_t *)((char *)&r->samples.items[i] + field);

		if (*value)
			last = *value;
		*value = last;
	}
}

/* Derives the anonymous bytes where only the total was measured: bytes of files change evenly. */
static void derive_between(
    struct recorded_sample *items, size_t from, size_t to, uint64_t before, uint64_t after)
{
	uint64_t start = from ? items[from - 1].time_ns : 0, end = items[to - 1].time_ns;
	uint64_t change = before > after ? before - after : after - before;

	for (size_t i = from; i < to; i++) {
		struct recorded_sample *s = &items[i];
		double part =
		    end > start ? (double)(s->time_ns - start) / (double)(end - start) : 1;

		s->of_files = (uint64_t)((1 - part) * (double)before + part * (double)after);
		if (s->anonymous || !s->resident)
			continue;
		s->anonymous = num_less(s->resident, s->of_files);
		s->unsure = change > s->anonymous / FILES_PART + FILES_MIN;
	}
}

static void derive_anonymous(struct recorded *r)
{
	struct recorded_sample *items = r->samples.items;
	uint64_t before = 0;
	size_t from = 0;

	for (size_t i = 0; i < r->samples.count; i++) {
		uint64_t now = num_less(items[i].resident, items[i].anonymous);

		if (!items[i].anonymous || !items[i].resident)
			continue;
		derive_between(items, from, i + 1, before, now);
		from = i + 1;
		before = now;
	}
	if (from)
		derive_between(items, from, r->samples.count, before, before);
}

/* Subtracts the process from the levels of the group and the machine: others remain. */
static void derive_others(struct recorded *r)
{
	uint64_t own = 0;

	for (size_t i = 0; i < r->samples.count; i++) {
		struct recorded_sample *s = &r->samples.items[i];

		if (s->anonymous)
			own = s->anonymous;
		s->group = num_less(s->group, s->files + own);
		s->machine = num_less(s->machine, own);
	}
}

/* Sets the limit that the process started with; it holds until another one is seen. */
static void start_limit(struct recorded *r, const struct feed *feed, const char *key, size_t field)
{
	const char *text = feed->info(feed->self, key);
	uint64_t *first;

	if (!r->samples.count || !text)
		return;
	first = (uint64_t *)((char *)&r->samples.items[0] + field);
	if (!*first)
		*first = strcmp(text, "unlimited") ? strtoull(text, NULL, 10) : UINT64_MAX;
}

/* Two samples within this time show no pace. */
#define PACE_NS 5000000u

static void derive_pace(struct recorded *r)
{
	const struct recorded_sample *first = NULL, *from = NULL;

	for (size_t i = 0; i < r->samples.count; i++) {
		const struct recorded_sample *s = &r->samples.items[i];

		if (!s->anonymous)
			continue;
		first = first ? first : s;
		r->half_ns = first->time_ns + (s->time_ns - first->time_ns) / 2;
	}
	for (size_t i = 0; i < r->samples.count; i++) {
		const struct recorded_sample *s = &r->samples.items[i];
		double grown;

		if (!s->anonymous || s->time_ns > r->half_ns)
			continue;
		if (from && s->time_ns < from->time_ns + PACE_NS)
			continue;
		grown = from ? (double)num_less(s->anonymous, from->anonymous) /
				   (double)(s->time_ns - from->time_ns)
			     : 0;
		r->pace = grown > r->pace ? grown : r->pace;
		from = s;
	}
}

static void complete(struct recorded *r, const struct feed *feed)
{
	static const size_t seldom[] = {offsetof(struct recorded_sample, beside),
	    offsetof(struct recorded_sample, group), offsetof(struct recorded_sample, machine),
	    offsetof(struct recorded_sample, limit_as),
	    offsetof(struct recorded_sample, limit_data)};

	derive_anonymous(r);
	derive_pace(r);
	start_limit(r, feed, "limit.as", offsetof(struct recorded_sample, limit_as));
	start_limit(r, feed, "limit.data", offsetof(struct recorded_sample, limit_data));
	carry(r, offsetof(struct recorded_sample, files));
	derive_others(r);
	for (size_t i = 0; i < sizeof(seldom) / sizeof(*seldom); i++)
		carry(r, seldom[i]);
}

int recorded_read(struct feed feed, struct feed *supervisor, int64_t shift_ns, struct recorded *out,
    struct err *err)
{
	const struct trace_facts *facts = feed.facts(feed.self);
	/* Samples of the program that follows an exec, or from after a detach, do not count. */
	uint64_t until = facts->end_how == TRACE_END_EXEC || facts->end_how == TRACE_END_DETACHED
			     ? facts->last_ns
			     : UINT64_MAX;
	uint64_t peak = 0, events = 0;
	struct event e;
	int rc = feed.rewind(feed.self, err);

	memset(out, 0, sizeof(*out));
	out->gaps = facts->dropped_total || facts->budget || facts->mode != TRACE_MODE_FULL;
	feed_progress(&feed, "reading what was measured");
	while (!rc && (rc = feed.next(feed.self, &e, err)) == 1) {
		rc = 0;
		feed_passed(&feed, ++events);
		if ((e.kind == EV_LEVEL || e.kind == EV_FAILED) && e.space == TRACE_SPACE_HOST)
			rc = take(out, &e, sample_of(&e, true), e.time_ns, err);
	}
	progress_end();
	if (!rc && supervisor)
		rc = supervisor->rewind(supervisor->self, err);
	while (supervisor && !rc && (rc = supervisor->next(supervisor->self, &e, err)) == 1) {
		int64_t at = (int64_t)e.time_ns + shift_ns;

		rc = 0;
		if (e.kind != EV_LEVEL || e.space != TRACE_SPACE_HOST || at < 0 ||
		    (uint64_t)at > until)
			continue;
		if (e.u.child.pid == facts->pid) {
			rc = take(out, &e, sample_of(&e, false), (uint64_t)at, err);
			take_peak(out, &e, &peak);
			take_stack(out, &e);
		} else if (!e.u.child.pid) { /* a sample of the machine and the group */
			rc = take(out, &e, (struct recorded_sample){0}, (uint64_t)at, err);
		}
	}
	if (rc)
		return rc;
	if (out->samples.count)
		qsort(out->samples.items, out->samples.count, sizeof(*out->samples.items), by_time);
	complete(out, &feed);
	return 0;
}

void recorded_fini(struct recorded *r)
{
	vec_free(&r->samples);
}
