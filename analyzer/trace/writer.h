/*
 * writer.h - a trace file made of events: of some of those that were read from another one. What
 * they refer to (strings, modules, code, stacks, spaces, threads) is taken over from there, as far
 * as they refer to it; facts about the process all are.
 */
#ifndef ANALYZER_TRACE_WRITER_H
#define ANALYZER_TRACE_WRITER_H

#include "trace/event.h"
#include "util/text/err.h"

struct trace;
struct trace_writer;

/* `of` is borrowed, and may be read meanwhile. NULL: no memory. */
struct trace_writer *trace_writer_new(struct trace *of);
void trace_writer_free(struct trace_writer *w); /* accepts NULL */

/* In place of what the other trace says of that key. 0 or -ENOMEM; the words are copied. */
int trace_writer_info(struct trace_writer *w, const char *key, const char *value);

/* The next event: times do not fall, and their order is kept. What was read from `of` may be
 * changed before, but for stacks. EV_OUTSIDE is none of the process', and left out. 0 or negative,
 * with err. */
int trace_writer_add(struct trace_writer *w, const struct event *e, struct err *err);

/* Makes the file, which must not be there yet; a part of it is not left behind. 0 or negative, with
 * err. */
int trace_writer_save(struct trace_writer *w, const char *path, struct err *err);

/* For extended.c: the id in the file of what an event names, which is defined there the first time.
 * A text of NULL, and an id of 0, is 0. */
uint32_t writer_string(struct trace_writer *w, const char *text);
uint32_t writer_stack(struct trace_writer *w, uint32_t id);
uint32_t writer_space(struct trace_writer *w, uint32_t id);

#endif
