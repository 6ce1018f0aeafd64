/*
 * progress.h - one line on stderr for work that takes longer than a second: what, how far, how
 * long still. Only on a terminal; it takes itself away at the end. One at a time: what begins
 * meanwhile is part of it, and not shown. One thread.
 */
#ifndef ANALYZER_UTIL_PROGRESS_H
#define ANALYZER_UTIL_PROGRESS_H

#include <stdint.h>

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
