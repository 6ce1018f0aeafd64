/*
 * search.c - leaves units out in ever smaller portions: by space, call site, time and request; then
 * every other block of each call site. A portion stays out if the verdict stays the same.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "reduce/reduce.h"
#include "util/num.h"
#include "util/progress.h"
#include "util/tuned.h"
#include "verdict/verdict.h"

TUNED(double, CONFIDENT, 0.8, "a reader believes that, and a smaller trace has less evidence");
TUNED(uint32_t, PORTIONS_MAX, 64, "finer portions leave out little, and each costs a verdict");
TUNED(uint64_t, UNACCOUNTED_PART, 50, "2 % of the limit: page rounding of what was left out");
TUNED(uint32_t, STACKS_APART, 24,
    "each costs verdicts of its own; the small ones are thinned together");

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

bool search_is_late(const struct search *s)
{
	return (s->stop && *s->stop) || now() > s->deadline;
}

static int judge(struct search *s, struct view *view, struct verdict_result *out, struct err *err)
{
	struct feed outside = view_outside(view);
	const struct record *r = s->record;
	struct supervised *supervised = NULL;
	struct feed own = view_feed(view);
	struct supervised_of of = {
	    .pid = view->facts.pid, .stack_each = supervised_stack_each(&own)};
	int rc = 0;

	if (r->supervised) {
		supervised = malloc(sizeof(*supervised));
		if (!supervised)
			return err_set(err, -ENOMEM, "no memory for the verdict");
		of.shift_ns = (int64_t)(outside.facts(outside.self)->start_mono_ns -
					view->facts.start_mono_ns);
		rc = supervised_read(&outside, &of, supervised, err);
	}
	if (!rc)
		rc = verdict_again(s->verdict, view_feed(view), supervised, out, err);
	free(supervised);
	return rc;
}

static const char *function_of(const struct verdict_result *v)
{
	return v->verdict.blame.function ? v->verdict.blame.function : "";
}

static uint32_t innermost(const struct stack_view *v)
{
	return v->count ? v->symbols[v->count - 1].id : 0;
}

static enum torch_match_kind match_of(const struct verdict_result *v)
{
	return v->devices.first ? v->devices.first->match.kind : TORCH_MATCH_NONE;
}

static bool is_same(const struct search *s, const struct view *view, const struct verdict_result *v)
{
	double least = s->same.confidence < CONFIDENT ? s->same.confidence : CONFIDENT;

	if ((int64_t)view->peak_live - (int64_t)view->moment_live > s->excess)
		return false;
	/* The ledger must still say where the bytes were. */
	if ((uint64_t)llabs(v->ledger.unaccounted) >
	    s->same.unaccounted + v->ledger.limit_bytes / UNACCOUNTED_PART)
		return false;
	if (s->same.match != TORCH_MATCH_NONE && match_of(v) > s->same.match)
		return false;
	return v->verdict.cause == s->same.cause && v->verdict.confidence >= least &&
	       !strcmp(function_of(v), s->same.function) && v->failure.kind == s->same.kind &&
	       v->failure.limit == s->same.limit &&
	       v->failure.requested_bytes == s->same.requested &&
	       v->failure.stack.count == s->same.stack_count &&
	       innermost(&v->failure.stack) == s->same.stack_id;
}

/* A block goes with its steps, a segment with its blocks. A segment without blocks goes, too:
 * PyTorch would not have it. */
static void close_over(struct search *s)
{
	const struct record_unit *units = s->record->units.items;
	size_t count = s->record->units.count;

	memset(s->used, 0, count);
	for (size_t i = 1; i < count; i++) {
		if (units[i].chain && !s->trial[units[i].chain])
			s->trial[i] = 0;
		if (units[i].inside && !s->trial[units[i].inside])
			s->trial[i] = 0;
		else if (units[i].inside && s->trial[i])
			s->used[units[i].inside] = 1;
	}
	for (size_t i = 1; i < count; i++)
		if (units[i].holds && !s->used[i])
			s->trial[i] = 0;
}

static uint64_t kept_events(const struct search *s, const uint8_t *kept)
{
	uint64_t events = 0;

	for (size_t i = 0; i < s->record->units.count; i++)
		events += kept[i] ? s->record->units.items[i].events : 0;
	return events;
}

static void swap(struct search *s)
{
	uint8_t *kept = s->kept;

	s->kept = s->trial;
	s->trial = kept;
	s->events = kept_events(s, s->kept);
}

/* Numbers the units that are left out now and were not before. */
static void count_portion(struct search *s)
{
	s->portions++;
	for (size_t i = 0; i < s->record->units.count; i++)
		if (s->kept[i] && !s->trial[i])
			s->portion[i] = s->portions;
}

/* Judges the record without the units that s->trial leaves out. 1: the verdict is the same, and
 * they stay out; 0; negative with err. */
static int try(struct search *s, struct err *err)
{
	struct verdict_result v;
	struct view view;
	int rc;

	close_over(s);
	rc = view_make(s->record, s->trial, &view);
	s->trials++;
	if (rc)
		err_set(err, rc, "no memory for the search");
	else
		rc = judge(s, &view, &v, err);
	if (!rc) {
		rc = is_same(s, &view, &v);
		if (rc) {
			s->left = (struct search_left){v.verdict.confidence, v.failure.limit_bytes};
			if (s->taking)
				count_portion(s);
			swap(s);
		}
		verdict_fini(&v);
	}
	view_fini(&view);
	progress_step(s->ways);
	return rc;
}

/* A group number for each unit, from 1 to count; 0: in no group. */
struct groups {
	uint32_t *of; /* by unit */
	uint32_t count;
};

/* Leaves the units of groups (from, to] out of the trial. Returns the number of their events. */
static uint64_t leave_out(struct search *s, const struct groups *g, uint32_t from, uint32_t to)
{
	uint64_t events = 0;

	memcpy(s->trial, s->kept, s->record->units.count);
	for (size_t i = 1; i < s->record->units.count; i++) {
		const struct record_unit *u = &s->record->units.items[i];

		bool follows = u->chain && !s->trial[u->chain];

		if (!s->kept[i] || (!follows && (!u->leaves || g->of[i] <= from || g->of[i] > to)))
			continue;
		s->trial[i] = 0;
		events += u->events;
	}
	return events;
}

/* Leaves out all groups, then halves and so on, if a portion has a 128th of the events or more. */
static int leave_out_groups(struct search *s, const struct groups *g, struct err *err)
{
	uint32_t portion = g->count;
	int rc = 0;

	while (portion && rc >= 0 && g->count / portion <= PORTIONS_MAX) {
		for (uint32_t from = 0; from < g->count && rc >= 0 && !search_is_late(s);
		     from += portion) {
			uint64_t events = leave_out(s, g, from, from + portion);

			if (events && events >= s->events / 128)
				rc = try(s, err);
		}
		portion /= 2;
	}
	return rc < 0 ? rc : 0;
}

/* Units of one key form a group; 0: the unit is in none. */
typedef uint64_t key_fn(const struct record *r, const struct record_unit *u);

/* Numbers the groups in the order in which their keys appear. */
static int by_key(struct search *s, key_fn *key, struct groups *g)
{
	struct map ids = {0};
	int rc = 0;

	g->count = 0;
	for (size_t i = 0; i < s->record->units.count && !rc; i++) {
		const struct record_unit *u = &s->record->units.items[i];
		uint64_t k = i && s->kept[i] && u->leaves && u->events ? key(s->record, u) : 0;
		uint64_t *id = k ? map_put(&ids, k) : NULL;

		if (k && !id)
			rc = -ENOMEM;
		if (id && !*id)
			*id = ++g->count;
		g->of[i] = id ? (uint32_t)*id : 0;
	}
	map_free(&ids);
	return rc;
}

static bool is_block(const struct record_unit *u)
{
	return u->kind == UNIT_BLOCK || u->kind == UNIT_SPACE_BLOCK;
}

static uint64_t by_kind(const struct record *r, const struct record_unit *u)
{
	(void)r;
	return u->kind + 1u;
}

static uint64_t after(const struct record *r, const struct record_unit *u)
{
	return u->first > r->moment && u->kind != UNIT_LEVEL ? 1 : 0;
}

static uint64_t churn(const struct record *r, const struct record_unit *u)
{
	(void)r;
	return is_block(u) && u->held <= 0 ? u->stack + 1u : 0;
}

static uint64_t stats(const struct record *r, const struct record_unit *u)
{
	(void)r;
	return is_block(u) ? (uint64_t)u->kind << 32 | (u->stack + 1u) : 0;
}

static uint64_t window(const struct record *r, const struct record_unit *u)
{
	return is_block(u) ? 1 + (uint64_t)u->first * PORTIONS_MAX / (r->events.count + 1) : 0;
}

static uint64_t request(const struct record *r, const struct record_unit *u)
{
	(void)r;
	return is_block(u) || u->kind == UNIT_MARK ? u->request : 0;
}

static uint64_t steps(const struct record *r, const struct record_unit *u)
{
	return u->kind == UNIT_STEP ? 1 + (uint64_t)u->first * PORTIONS_MAX / (r->events.count + 1)
				    : 0;
}

static uint64_t beside(const struct record *r, const struct record_unit *u)
{
	return is_block(u) || u->kind == UNIT_LEVEL || u->kind == UNIT_STEP
		   ? 0
		   : 1 + (uint64_t)u->first * PORTIONS_MAX / (r->events.count + 1);
}

/* Leaves out every second unit of the key `only` (0: of each key): the first and the trend stay. */
static int thin(struct search *s, key_fn *key, uint64_t only, struct err *err)
{
	struct map seen = {0};
	uint64_t events = 0;
	int rc = 0;

	memcpy(s->trial, s->kept, s->record->units.count);
	for (size_t i = 1; i < s->record->units.count && !rc; i++) {
		const struct record_unit *u = &s->record->units.items[i];
		uint64_t k = s->kept[i] && u->leaves && u->events ? key(s->record, u) : 0;
		uint64_t *count;

		if (!k || (only && k != only))
			continue;
		count = map_put(&seen, k);
		if (!count)
			rc = -ENOMEM;
		else if ((*count)++ & 1) {
			s->trial[i] = 0;
			events += u->events;
		}
	}
	map_free(&seen);
	if (rc)
		return err_set(err, rc, "no memory for the search");
	return events ? try(s, err) : 0;
}

static int thin_until_refused(struct search *s, key_fn *key, uint64_t only, struct err *err)
{
	int rc = 1;

	while (rc == 1 && !search_is_late(s))
		rc = thin(s, key, only, err);
	return rc < 0 ? rc : 0;
}

static uint64_t chain(const struct record *r, const struct record_unit *u)
{
	(void)r;
	return u->chain;
}

static uint64_t measured(const struct record *r, const struct record_unit *u)
{
	(void)r;
	return u->kind == UNIT_LEVEL;
}

struct heavy {
	uint64_t key, events;
};

static int by_events(const void *a, const void *b)
{
	const struct heavy *x = a, *y = b;

	return (x->events < y->events) - (x->events > y->events);
}

/* Thins the stacks with the most events, one by one. */
static int thin_stacks(struct search *s, struct err *err)
{
	VEC(struct heavy) list = {0};
	struct map at = {0};
	int rc = 0;

	for (size_t i = 1; i < s->record->units.count && !rc; i++) {
		const struct record_unit *u = &s->record->units.items[i];
		uint64_t k = s->kept[i] && u->leaves && u->events ? stats(s->record, u) : 0;
		uint64_t *index = k ? map_put(&at, k) : NULL;

		if (k && !index)
			rc = -ENOMEM;
		if (index && !*index) {
			rc = vec_push(&list, (struct heavy){.key = k});
			*index = list.count;
		}
		if (index && !rc)
			list.items[*index - 1].events += u->events;
	}
	map_free(&at);
	if (rc) {
		vec_free(&list);
		return err_set(err, rc, "no memory for the search");
	}
	if (list.count)
		qsort(list.items, list.count, sizeof(*list.items), by_events);
	for (size_t i = 0; i < list.count && i < STACKS_APART && rc >= 0; i++)
		if (list.items[i].events >= s->events / 64 && !search_is_late(s))
			rc = thin_until_refused(s, stats, list.items[i].key, err);
	vec_free(&list);
	return rc;
}

static int stack_stats_by_stack_stats(struct search *s, struct err *err)
{
	int rc = thin_until_refused(s, stats, 0, err);

	return rc ? rc : thin_stacks(s, err);
}

static int resizes(struct search *s, struct err *err)
{
	return thin_until_refused(s, chain, 0, err);
}

static int measurements(struct search *s, struct err *err)
{
	return thin_until_refused(s, measured, 0, err);
}

/* A way leaves out units by a key, in ever smaller portions, or has a function of its own. */
struct way {
	key_fn *key;
	int (*run)(struct search *s, struct err *err);
};

static int leave_out_by(struct search *s, const struct way *way, struct groups *g, struct err *err)
{
	int rc;

	if (way->run)
		return way->run(s, err);
	rc = by_key(s, way->key, g);
	return rc ? err_set(err, rc, "no memory for the search") : leave_out_groups(s, g, err);
}

/* Removes the units that are left out: of millions, usually a few hundred stay, and each trial
 * visits all. No kept unit refers to a removed one (close_over()). */
static int drop_units(struct search *s)
{
	struct record *r = s->record;
	size_t count = r->units.count, n = 0;
	uint32_t *moved = calloc(count, sizeof(*moved));

	if (!moved)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		if (i && !s->kept[i])
			continue;
		moved[i] = (uint32_t)n;
		r->units.items[n++] = r->units.items[i];
	}
	r->units.count = n;
	for (size_t i = 0; i < n; i++) {
		struct record_unit *u = &r->units.items[i];

		u->same = (uint32_t)i;
		u->chain = moved[u->chain];
		u->inside = moved[u->inside];
	}
	for (size_t i = 0; i < r->events.count; i++)
		r->events.items[i].unit = moved[r->events.items[i].unit];
	for (size_t i = 0; i < r->outside.count; i++)
		r->outside.items[i].unit = moved[r->outside.items[i].unit];
	memset(s->kept, 1, n);
	free(moved);
	return 0;
}

/* Removes for good what is left out, so that the next trials are shorter. */
static int settle(struct search *s, struct err *err)
{
	struct view view;
	int rc = view_make(s->record, s->kept, &view);

	if (!rc)
		rc = view_settle(&view, s->record);
	view_fini(&view);
	if (!rc)
		rc = drop_units(s);
	return rc ? err_set(err, rc, "no memory for the search") : 0;
}

/* Checks with the limit as it is, or else midway between the need and the refused request. */
static int check(struct search *s, struct err *err)
{
	int rc = s->check(s->arg, s, err);

	if (rc || !s->record->requested)
		return rc;
	s->record->centred = !s->record->centred;
	memcpy(s->trial, s->kept, s->record->units.count);
	rc = try(s, err);
	if (rc == 1)
		rc = s->check(s->arg, s, err);
	if (rc <= 0)
		s->record->centred = !s->record->centred;
	return rc;
}

/* Leaves out the way's portions up to `until` and those after `behind`, if the verdict allows. */
static int leave_portions(struct search *s, uint32_t until, uint32_t behind, struct err *err)
{
	for (size_t i = 0; i < s->record->units.count; i++)
		s->trial[i] =
		    s->before[i] &&
		    !(s->portion[i] && (s->portion[i] <= until || s->portion[i] > behind));
	return try(s, err);
}

static int check_portions(struct search *s, uint32_t until, uint32_t behind, struct err *err)
{
	int rc = leave_portions(s, until, behind, err);

	return rc == 1 ? check(s, err) : rc;
}

/*
 * The record without all of the way's portions does not fail. A check, which replays, takes
 * longest, so a search by halves finds the first portion that is needed. The portions before it
 * stay out, and those behind it, too, if the record still fails.
 */
static int take_part(struct search *s, uint64_t events, struct search_left left, struct err *err)
{
	uint32_t good = 0, bad = s->portions;
	int rc = 0;

	while (bad - good > 1 && rc >= 0 && !search_is_late(s)) {
		uint32_t middle = good + (bad - good) / 2;

		rc = check_portions(s, middle, UINT32_MAX, err);
		if (rc > 0)
			good = middle;
		else
			bad = middle;
	}
	if (rc >= 0 && bad < s->portions && !search_is_late(s))
		rc = check_portions(s, good, bad, err);
	else
		rc = rc < 0 ? rc : 0;
	if (rc)
		return rc < 0 ? rc : 0;
	if (good)
		rc = leave_portions(s, good, UINT32_MAX, err);
	if (rc == 1)
		return 0;
	memcpy(s->kept, s->before, s->record->units.count);
	s->events = events;
	s->left = left;
	return rc;
}

static int take_way(struct search *s, const struct way *way, struct groups *g, struct err *err)
{
	const struct search_left left = s->left;
	uint64_t events = s->events;
	int rc;

	memcpy(s->before, s->kept, s->record->units.count);
	memset(s->portion, 0, s->record->units.count * sizeof(*s->portion));
	s->portions = 0;
	s->taking = true;
	rc = leave_out_by(s, way, g, err);
	s->taking = false;
	if (rc || s->events == events)
		return rc;
	rc = check(s, err);
	if (!rc)
		rc = take_part(s, events, left, err);
	return rc < 0 ? rc : settle(s, err);
}

int search_round(struct search *s, struct err *err)
{
	static const struct way ways[] = {{.key = by_kind}, {.key = after}, {.key = churn},
	    {.key = stats}, {.key = window}, {.key = request}, {.run = stack_stats_by_stack_stats},
	    {.key = steps}, {.run = resizes}, {.run = measurements}, {.key = beside}};
	struct groups g = {.of = calloc(s->record->units.count, sizeof(*g.of))};
	int rc = g.of ? 0 : err_set(err, -ENOMEM, "no memory for the search");

	snprintf(s->words, sizeof(s->words), "leaving out what the failure does not need, round %u",
	    ++s->rounds);
	progress_begin(s->words, sizeof(ways) / sizeof(*ways));
	for (s->ways = 0; s->ways < sizeof(ways) / sizeof(*ways) && !rc && !search_is_late(s);
	     s->ways++)
		rc = take_way(s, &ways[s->ways], &g, err);
	progress_end();
	free(g.of);
	return rc;
}

static void remember(struct search *s, const struct view *view, const struct verdict_result *v)
{
	s->same.cause = v->verdict.cause;
	snprintf(s->same.function, sizeof(s->same.function), "%s", function_of(v));
	s->same.confidence = v->verdict.confidence;
	s->left = s->whole = (struct search_left){v->verdict.confidence, v->failure.limit_bytes};
	s->same.unaccounted = (uint64_t)llabs(v->ledger.unaccounted);
	s->same.match = match_of(v);
	s->same.kind = v->failure.kind;
	s->same.limit = v->failure.limit;
	s->same.requested = v->failure.requested_bytes;
	s->same.stack_count = v->failure.stack.count;
	s->same.stack_id = innermost(&v->failure.stack);
	s->excess = (int64_t)view->peak_live - (int64_t)view->moment_live;
	if (s->excess < 0)
		s->excess = 0;
}

int search_begin(struct search *s, struct record *record, const struct verdict_result *verdict,
    double seconds, struct err *err)
{
	struct verdict_result v;
	struct view view;
	int rc;

	*s = (struct search){.record = record,
	    .verdict = verdict,
	    .kept = malloc(record->units.count),
	    .trial = malloc(record->units.count),
	    .before = malloc(record->units.count),
	    .used = malloc(record->units.count),
	    .portion = malloc(record->units.count * sizeof(*s->portion)),
	    .deadline = now() + seconds};
	if (!s->kept || !s->trial || !s->before || !s->used || !s->portion)
		return err_set(err, -ENOMEM, "no memory for the search");
	memset(s->kept, 1, record->units.count);
	s->events = kept_events(s, s->kept);
	rc = view_make(record, s->kept, &view);
	if (rc)
		err_set(err, rc, "no memory for the search");
	else
		rc = judge(s, &view, &v, err);
	if (!rc) {
		remember(s, &view, &v);
		if (v.verdict.cause != verdict->verdict.cause)
			rc = err_set(err, -EINVAL,
			    "the verdict on this process alone is '%s', and on all of them '%s': "
			    "the failure needs all processes, so it cannot be reduced",
			    cause_name(v.verdict.cause), cause_name(verdict->verdict.cause));
		verdict_fini(&v);
	}
	view_fini(&view);
	return rc;
}

void search_fini(struct search *s)
{
	free(s->kept);
	free(s->trial);
	free(s->before);
	free(s->used);
	free(s->portion);
}
