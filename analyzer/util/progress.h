/*
 * progress.h - reports long work on stderr: what, how far, how long still. On a terminal one line,
 * from the first second on, which is removed at the end; in a log a line every 10 seconds. One
 * piece of work at a time: a nested one is part of the outer and not shown. One thread.
 */
#ifndef ANALYZER_UTIL_PROGRESS_H
#define ANALYZER_UTIL_PROGRESS_H

#include <stdint.h>

/* Use SIGALRM to print while nothing calls progress_step(). Call once, at the start of a command
 * that does not use that signal itself. */
void progress_watch(void);

/* Stop that: the work to come lasts as long as the user wants. */
void progress_unwatch(void);

/* Begin work of `total` steps, 0: not known. `what` must stay valid until progress_end(). */
void progress_begin(const char *what, uint64_t total);
/* Report `done` steps. Cheap enough for every few thousand steps. */
void progress_step(uint64_t done);
void progress_end(void);
/* The part that is done, 0 to 1; 0: not known, or no work. */
double progress_share(void);
/* Remove the line before something else is printed. */
void progress_clear(void);

/* Format the line, for the test: 0 <= done <= total. Returns `line`. */
const char *progress_line(
    char *line, unsigned room, const char *what, uint64_t done, uint64_t total, uint64_t ns);

#endif
