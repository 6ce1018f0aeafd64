/*
 * feed.h - a source of events and symbols: a trace, or a test's own list. All stages after trace/
 * read a process through it, so that each can be tested without a file.
 */
#ifndef ANALYZER_MODEL_FEED_H
#define ANALYZER_MODEL_FEED_H

#include "trace/trace.h"

struct feed {
	void *self;
	/* As trace_next() and trace_rewind(). */
	int (*next)(void *self, struct event *out, struct err *err);
	int (*rewind)(void *self, struct err *err);
	/* As trace_symbols(): outermost first; the array lives as long as the feed. */
	size_t (*symbols)(void *self, uint32_t stack, const struct symbol **out);
	const char *(*info)(void *self, const char *key); /* NULL: not recorded */
	const struct trace_facts *(*facts)(void *self);
	/* Bytes read so far, of facts()->event_bytes; NULL if nobody shows progress. */
	uint64_t (*bytes_read)(void *self);
	/* As trace_space(); NULL if there is only the host. */
	const char *(*space)(void *self, uint32_t id);
	/* As trace_each_live(). */
	int (*each_live)(void *self, int (*fn)(void *arg, const struct block *b), void *arg);
	/* As trace_path(); NULL if symbols cost nothing. */
	int (*path)(void *self, uint32_t stack, struct stack_path *path);
	/* As trace_rewind_spaces(); NULL if nothing can be left out. */
	int (*rewind_spaces)(void *self, struct err *err);
	/* As trace_stack_order(); NULL if symbols cost nothing. */
	int (*stack_order)(void *self, const uint32_t **order, size_t *count);
	/* As trace_fold_stacks() and trace_stack_limit(), which bounds the number of stacks; NULL
	 * if symbols cost nothing. */
	int (*fold_stacks)(void *self, const struct trace_fold *fold, uint16_t *out);
	uint32_t (*stack_limit)(void *self);
	void (*rest)(void *self); /* as trace_release_live(); NULL if there is nothing to release */
};

/* The same as trace_rewind_spaces(), but blocks of the host may still come. */
int feed_rewind_spaces(const struct feed *feed, struct err *err);

#define FEED_STEP_EVENTS 65536u
/* Report progress (util/progress.h): call feed_progress() before the first event, and feed_passed()
 * after each event. */
void feed_progress(const struct feed *feed, const char *what);
void feed_step(const struct feed *feed);
static inline void feed_passed(const struct feed *feed, uint64_t events)
{
	if (events % FEED_STEP_EVENTS == 0)
		feed_step(feed);
}

/* Release the live blocks; nobody needs them before the next rewind. */
void feed_rest(const struct feed *feed);

/* Read the stack's symbols for one use, as trace_path(). */
int feed_path(const struct feed *feed, uint32_t stack, struct stack_path *path);

/* Code that has read this many single stacks should read all of them once in the order below, and
 * keep the result: a stack then costs only the frames that it shares with no other. */
#define FEED_LOOKS 4096u
/* Return the number of stacks in that order; 0: there is no such order. */
size_t feed_stack_order(const struct feed *feed, const uint32_t **order);

/* Return the executable if it runs Python; else NULL. */
const char *feed_interpreter(const struct feed *feed);

/* Read the number under that key of INFO; false: no number, as "unlimited". */
bool feed_number(const struct feed *feed, const char *key, uint64_t *out);

/* Return a stack's innermost Python frame, valid as long as feed->symbols()'s result; NULL:
 * none. */
const struct symbol *feed_python_frame(const struct feed *feed, uint32_t stack);

struct feed feed_of_trace(struct trace *t);

#endif
