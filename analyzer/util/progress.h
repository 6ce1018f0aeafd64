/*
 * progress.h - word on stderr of work that takes long: what, how far, how long still. On a terminal
 * one line from the first second on, which takes itself away at the end; elsewhere, as in a log, a
 * line each 10 seconds, counted over all that a command does. One at a time: what begins meanwhile
 * is part of it, and not shown. One thread.
 */
#ifndef ANALYZER_UTIL_PROGRESS_H
#define ANALYZER_UTIL_PROGRESS_H

#include <stdint.h>

/* Once, at the start of a command: lines come then also while nothing calls progress_step(), by
 * SIGALRM. Who lives on that signal itself leaves it out. */
void progress_watch(void);

/* What comes now takes as long as somebody wants it to. */
void progress_unwatch(void);

/* `total` 0: not known. `what` must live until progress_end(). */
void progress_begin(const char *what, uint64_t total);
/* Cheap enough to be called every few thousand steps. */
void progress_step(uint64_t done);
void progress_end(void);
/* How much of it is done, 0 to 1; 0: not known, or nothing is being done. */
double progress_share(void);
/* Wipes the line, if one is shown, because something else is printed now. */
void progress_clear(void);

/* The line at a moment, for the test: 0 <= done <= total. Returns `line`. */
const char *progress_line(
    char *line, unsigned room, const char *what, uint64_t done, uint64_t total, uint64_t ns);

#endif
