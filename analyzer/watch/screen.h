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
/* Append a rate: "2.61 MiB/s", or per hour where little comes each second. */
void screen_rate(double rate, struct str *out);

#endif
