/* explain.c - see explain.h. */
#include "explain/explain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "explain/judge.h"
#include "explain/scan.h"
#include "util/progress.h"
#include "util/tuned.h"

#define PIECE (64u << 10)

#define SECOND 1000000000ll

/* --- the order of the messages, and those that are about one event --- */

/* Failures this close belong to one event. */
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

static bool near(
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

/* Sorts by time if all times come from one clock, else keeps the log's order; then numbers the
 * events. */
static void order(struct explanation *e)
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
		if (!last || !near(e, last, m))
			event++;
		m->event = event;
		last = m;
	}
}

/* --- the log --- */

static int finish(struct scan *scan, const struct knowledge *knowledge, struct explanation *out)
{
	int rc = scan_end(scan);

	if (rc)
		return rc;
	order(out);
	return judge(out, knowledge);
}

static int fail(int rc, struct explanation *out, struct err *err)
{
	explain_fini(out);
	return rc == -ENOMEM ? err_set(err, rc, "no memory to read the log") : rc;
}

int explain_stream(
    FILE *in, const struct knowledge *knowledge, struct explanation *out, struct err *err)
{
	struct scan *scan = NULL;
	char *piece = malloc(PIECE);
	uint64_t read = 0;
	struct stat st;
	size_t n;
	int rc;

	*out = (struct explanation){0};
	rc = piece ? scan_new(knowledge, out, &scan, err) : -ENOMEM;
	/* A pipe's length is unknown. */
	progress_begin("reading the log",
	    !fstat(fileno(in), &st) && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0);
	while (!rc && (n = fread(piece, 1, PIECE, in)) > 0) {
		rc = scan_feed(scan, piece, n);
		progress_step(read += n);
	}
	progress_end();
	if (!rc && ferror(in))
		rc = err_set(err, errno ? -errno : -EIO, "cannot read the log: %s",
		    strerror(errno ? errno : EIO));
	if (!rc)
		rc = finish(scan, knowledge, out);
	scan_free(scan);
	free(piece);
	return rc ? fail(rc, out, err) : 0;
}

int explain_buffer(const char *text, size_t bytes, const struct knowledge *knowledge,
    struct explanation *out, struct err *err)
{
	struct scan *scan = NULL;
	int rc;

	*out = (struct explanation){0};
	rc = scan_new(knowledge, out, &scan, err);
	if (!rc)
		rc = scan_feed(scan, text, bytes);
	if (!rc)
		rc = finish(scan, knowledge, out);
	scan_free(scan);
	return rc ? fail(rc, out, err) : 0;
}

void explain_fini(struct explanation *e)
{
	for (size_t i = 0; i < e->count; i++)
		fields_free(&e->messages[i].fields);
	free(e->messages);
	arena_free(&e->arena);
	*e = (struct explanation){0};
}
