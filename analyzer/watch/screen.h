/*
 * screen.h - what is known of the watched processes, for a person: what grows and when it will be
 * full first, then each process's spaces and call sites.
 */
#ifndef ANALYZER_WATCH_SCREEN_H
#define ANALYZER_WATCH_SCREEN_H

#include "watch/watched.h"

/* Append the text, `width` columns wide at most. */
void screen_write(
    const struct watched *const *processes, size_t count, unsigned width, struct str *out);
/* Append one line on the process that will be full first; for a log. */
void screen_line(const struct watched *const *processes, size_t count, struct str *out);

/* Append when the space will be full: "full in 8 min (7 min to 9 min)", "does not grow"; nothing
 * while that is not known. */
void screen_when(const struct watched_space *s, struct str *out);
/* Append "3 requests in flight, 12 tasks, waits for memory 4 % of the time, 17 times at
 * memory.high" as far as it is known; nothing otherwise. */
void screen_state(const struct watched *w, struct str *out);
/* Append "likely leak (88 % sure) in f (a.py:3)"; nothing without a verdict. */
void screen_cause(const struct watched *w, struct str *out);
/* Append a rate: "2.61 MiB/s", or per hour where little comes each second. */
void screen_rate(double rate, struct str *out);

#endif
