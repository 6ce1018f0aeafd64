/* story.c - see story.h. */
#include "explain/story.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util/tuned.h"

#define SECOND 1000000000ll

/* Failures this close belong to one event. */
TUNED(unsigned, BESIDE_LINES, 6, "a code, its cause and its calls stand in lines of their own");
TUNED(unsigned, NEAR_LINES, 400, "a chain of exceptions with deep stacks, raised one on another");
TUNED(unsigned, RETRY_LINES, 20, "a program that recovers says so after one stack at most");
TUNED(int64_t, NEAR_NS, 30 * SECOND, "servers take some seconds to die, supervisors to notice");

static int64_t in_year(int64_t ns, int year)
{
	time_t seconds = (time_t)(ns / SECOND);
	struct tm tm;

	if (!gmtime_r(&seconds, &tm))
		return ns;
	tm.tm_year = year;
	return (int64_t)timegm(&tm) * SECOND + ns % SECOND;
}

/* Returns a time without a year in the year that is nearest to a time with one. */
static int64_t nearest_year(int64_t ns, int64_t to)
{
	time_t seconds = (time_t)(to / SECOND);
	int64_t best = ns;
	struct tm tm;

	if (!gmtime_r(&seconds, &tm))
		return ns;
	for (int year = tm.tm_year - 1; year <= tm.tm_year + 1; year++) {
		int64_t trial = in_year(ns, year);

		if (year < tm.tm_year || llabs(trial - to) < llabs(best - to))
			best = trial;
	}
	return best;
}

/* Takes the year from the nearest message above that has one, else from the first message with
 * one. */
static void fill_years(struct explanation *e)
{
	const struct when *known = NULL;

	for (size_t i = 0; i < e->count && !known; i++)
		if (e->messages[i].when.clock == WHEN_WALL && e->messages[i].when.year)
			known = &e->messages[i].when;
	for (size_t i = 0; known && i < e->count; i++) {
		struct when *when = &e->messages[i].when;

		if (when->clock != WHEN_WALL)
			continue;
		if (when->year)
			known = when;
		else
			when->ns = nearest_year(when->ns, known->ns);
	}
}

static int by_time(const void *a, const void *b)
{
	const struct explain_message *x = a, *y = b;

	if (x->when.ns != y->when.ns)
		return x->when.ns < y->when.ns ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

/* Returns whether every message has a time of one clock. A message without a time takes that of the
 * message before. */
static bool comparable(struct explanation *e)
{
	const struct when *last = NULL;

	for (size_t i = 0; i < e->count; i++) {
		struct when *when = &e->messages[i].when;

		if (when->clock == WHEN_UNKNOWN && last) {
			when->clock = last->clock;
			when->ns = last->ns;
		}
		if (when->clock == WHEN_UNKNOWN || (last && last->clock != when->clock))
			return false;
		last = when;
	}
	return last != NULL;
}

bool story_has(const struct explanation *e, enum message_kind kind)
{
	for (size_t i = 0; i < e->count; i++)
		if (e->messages[i].kind == kind)
			return true;
	return false;
}

bool story_near(
    const struct explanation *e, const struct explain_message *a, const struct explain_message *b)
{
	if (e->by_time && a->when.ns && b->when.ns)
		return b->when.ns - a->when.ns <= NEAR_NS;
	return b->line - a->line <= NEAR_LINES;
}

/* A failure that the program recovers from right away is a retry, too. */
static void mark_retried(struct explanation *e)
{
	for (size_t i = 0; i < e->count; i++) {
		const struct explain_message *retry = &e->messages[i];

		for (size_t j = i;
		     retry->kind == MESSAGE_RETRY && *retry->known->group && j-- > 0;) {
			struct explain_message *m = &e->messages[j];

			if (strcmp(m->known->group, retry->known->group) == 0 &&
			    m->kind == MESSAGE_FAILURE && retry->line - m->last_line <= RETRY_LINES)
				m->kind = MESSAGE_RETRY;
		}
	}
}

static bool settles(const struct explain_message *m)
{
	return !m->known->fallback && (m->kind == MESSAGE_FAILURE || m->kind == MESSAGE_RETRY ||
					  m->kind == MESSAGE_NOT_MEMORY);
}

/* What a program that is not known says counts only where no known message tells how it went. */
static void drop_fallbacks(struct explanation *e)
{
	size_t kept = 0;
	bool settled = false, others = false;

	for (size_t i = 0; i < e->count; i++)
		settled |= settles(&e->messages[i]);
	for (size_t i = 0; i < e->count; i++)
		others |= !e->messages[i].known->fallback && e->messages[i].kind != MESSAGE_CONTEXT;
	for (size_t i = 0; i < e->count; i++) {
		bool hint = e->messages[i].kind == MESSAGE_HINT;

		if ((settled || (hint && others)) && e->messages[i].known->fallback)
			fields_free(&e->messages[i].fields);
		else
			e->messages[kept++] = e->messages[i];
	}
	e->count = kept;
}

/* Lines about one refusal, of a program that is not known: "host" says only that a line names no
 * other memory. */
static bool is_named_beside(const struct explanation *e, const struct explain_message *m)
{
	for (size_t i = 0; i < e->count; i++) {
		const struct explain_message *other = &e->messages[i];

		if (!other->known->claim || strcmp(other->known->claim, "device") != 0)
			continue;
		if (fields_find(&m->fields, "requested_bytes") &&
		    !fields_find(&other->fields, "requested_bytes"))
			continue;
		if (other->line <= m->last_line + BESIDE_LINES &&
		    m->line <= other->last_line + BESIDE_LINES)
			return true;
	}
	return false;
}

static void drop_unnamed(struct explanation *e)
{
	for (size_t i = 0; i < e->count;) {
		struct explain_message *m = &e->messages[i];

		if (m->known->claim && strcmp(m->known->claim, "host") == 0 &&
		    is_named_beside(e, m)) {
			fields_free(&m->fields);
			memmove(m, m + 1, (e->count - i - 1) * sizeof(*m));
			e->count--;
		} else {
			i++;
		}
	}
}

/* Some messages are a part of a report whose end tells the failure; without that end they do. */
static void promote(struct explanation *e)
{
	if (story_has(e, MESSAGE_FAILURE))
		return;
	for (size_t i = 0; i < e->count; i++)
		if (e->messages[i].known->alone != MESSAGE_KIND_COUNT)
			e->messages[i].kind = e->messages[i].known->alone;
}

/* Sorts by time if all times come from one clock, else keeps the log's order; then numbers the
 * events. */
static void put_in_order(struct explanation *e)
{
	const struct explain_message *last = NULL;
	unsigned event = 0;

	fill_years(e);
	e->by_time = comparable(e);
	if (e->by_time)
		qsort(e->messages, e->count, sizeof(*e->messages), by_time);
	mark_retried(e);
	for (size_t i = 0; i < e->count; i++) {
		struct explain_message *m = &e->messages[i];

		if (m->kind != MESSAGE_FAILURE) {
			m->event = event;
			continue;
		}
		if (!last || !story_near(e, last, m))
			event++;
		m->event = event;
		last = m;
	}
}

void story_tell(struct explanation *e)
{
	drop_fallbacks(e);
	drop_unnamed(e);
	promote(e);
	put_in_order(e);
}
