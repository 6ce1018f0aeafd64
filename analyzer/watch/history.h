/*
 * history.h - the live bytes of each call site and space over the latest looks, for sparklines.
 * Matched by process, function, file and line, since the numbers of stacks change when a trace is
 * read again. Memory is bounded: HISTORY_POINTS looks of HISTORY_SERIES_MAX lines. One thread.
 */
#ifndef ANALYZER_WATCH_HISTORY_H
#define ANALYZER_WATCH_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HISTORY_POINTS 120u
#define HISTORY_SERIES_MAX 2048u
#define HISTORY_LEVELS 8u

/* What a series is of. Strings are copied; NULL: not known. */
struct history_key {
	uint32_t pid;
	bool space; /* `function` is the name of a space */
	const char *function, *file;
	uint32_t line;
};

struct history; /* all series */

struct history *history_new(void); /* NULL: no memory */
void history_free(struct history *h); /* accepts NULL */
/* Begin the next look, at that time in seconds of any clock. What is added counts for it. */
void history_look(struct history *h, double seconds);
/* Add what lives at this look. A look that was passed over counts as unchanged. 0 or -ENOMEM. */
int history_add(struct history *h, const struct history_key *key, uint64_t bytes);
/* Fill `columns` levels, oldest first: 1 to HISTORY_LEVELS; 0: before its first look. More looks
 * than columns are averaged. Differences below a tenth of the largest value stay low, so that
 * noise does not look like growth. */
void history_levels(
    const struct history *h, const struct history_key *key, unsigned columns, uint8_t *levels);
/* Return the bytes that it gained since the oldest kept look, and in *seconds the time of it. */
int64_t history_change(const struct history *h, const struct history_key *key, double *seconds);

#endif
