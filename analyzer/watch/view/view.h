/*
 * view.h - the watched processes on a terminal, with keys: the caller shows each look, and lets the
 * view serve keys and the terminal's signals between looks. Nothing of a trace can control the
 * terminal. One view a process, one thread.
 */
#ifndef ANALYZER_WATCH_VIEW_H
#define ANALYZER_WATCH_VIEW_H

#include "watch/watched.h"

struct view;

/* Take the terminal. `source` is what is watched, for when it has no process; it must outlive the
 * view. 0; 1: there is no terminal that could show it, or this build has no ncurses; -ENOMEM. */
int view_open(const char *source, struct view **out);
void view_close(struct view *v); /* gives the terminal back; accepts NULL */
/* Show a look. `watches` and `processes` must stay valid until the next one. 0 or -ENOMEM. */
int view_show(struct view *v, struct watch *const *watches, const struct watched *const *processes,
    size_t count);
/* Set the lines that stand below the headline from the next look on: text that is safe for a
 * terminal, each line with its end. Keeps nothing without memory. */
void view_set_lines(struct view *v, const char *lines);
/* Serve what came since: keys on stdin, a new size, a wish to be suspended. 0; 1: the person wants
 * to quit; -ENOMEM. */
int view_serve(struct view *v);

#endif
