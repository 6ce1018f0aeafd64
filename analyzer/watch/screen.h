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

#endif
