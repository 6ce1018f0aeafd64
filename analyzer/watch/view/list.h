/*
 * list.h - what the view shows: a copy of one look, so that it can stand still while looks go on;
 * which process and which call site are selected, and in what order call sites stand. Draws
 * nothing. One thread.
 */
#ifndef ANALYZER_WATCH_LIST_H
#define ANALYZER_WATCH_LIST_H

#include "util/vec.h"
#include "watch/history.h"
#include "watch/watched.h"

#define LIST_SPARK 16u /* columns */
#define LIST_FILTER 64u /* bytes, with the NUL */

enum list_sort { LIST_BY_GROWTH, LIST_BY_LIVE, LIST_BY_COUNT, LIST_BY_NAME, LIST_SORTS };
const char *list_sort_name(enum list_sort sort); /* "growth" */

/* A line of the view. */
struct list_site {
	char *function, *file; /* as in the trace; `file` may be NULL */
	char *name; /* shortened, safe for a terminal */
	char *line_name; /* "server.py:12", safe; "" if not known */
	uint32_t line;
	uint64_t live_bytes, live_count;
	double rate; /* as in struct watched_site */
	int64_t change; /* bytes, since the oldest look that is kept */
	uint8_t spark[LIST_SPARK]; /* as history_levels() */
};

struct list_process {
	struct watched facts; /* its call sites are not to be read: see below */
	char *command; /* safe */
	uint8_t sparks[WATCHED_SPACES][LIST_SPARK];
	struct list_site *sites;
	size_t listed;
};

struct list {
	char *headline;
	double seconds; /* the span of the histories */
	struct list_process *processes;
	size_t process_count;
	size_t process; /* the selected one; 0 if there is none */
	uint32_t pid; /* of it */
	bool chosen; /* by the person; else the one that will be full first is selected */

	enum list_sort sort;
	char filter[LIST_FILTER]; /* a part of a function's or a file's name, in any case */
	VEC(size_t) shown; /* call sites of the selected process, in order */
	size_t site; /* the selected one, in `shown`; 0 if there is none */

	struct history *history;
};

int list_init(struct list *l); /* 0 or -ENOMEM; in both cases list_fini() is right */
void list_fini(struct list *l);
/* Note a look in the histories; with `show`, show it, too, with the same process and call site
 * selected if they are still there. 0 or -ENOMEM, and what was shown before stays. */
int list_take(struct list *l, const struct watched *const *processes, size_t count, double seconds,
    bool show);
/* Show what is known at the latest look. */
int list_show(struct list *l, const struct watched *const *processes, size_t count);
/* Sort and filter again, after `sort` or `filter` has changed. The selected call site stays so. */
int list_arrange(struct list *l);
/* Select a process: by its place; nothing happens if there is none. */
int list_select(struct list *l, size_t process);
/* Select another call site: `by` further down. Stops at both ends. */
void list_move(struct list *l, int by);

/* NULL: there is none. */
const struct list_process *list_process(const struct list *l);
const struct list_site *list_site(const struct list *l);

#endif
