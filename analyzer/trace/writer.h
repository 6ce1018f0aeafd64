/*
 * writer.h - writes a trace file from some events of another trace. Copies the definitions that
 * these events refer to (strings, modules, code, stacks, spaces, threads), and all facts about the
 * process.
 */
#ifndef ANALYZER_TRACE_WRITER_H
#define ANALYZER_TRACE_WRITER_H

#include "trace/event.h"
#include "util/text/err.h"

struct trace;
struct trace_writer;

/* `of` must outlive the writer, and may be read meanwhile. NULL: no memory. */
struct trace_writer *trace_writer_new(struct trace *of);
void trace_writer_free(struct trace_writer *w); /* accepts NULL */

/* Replace the INFO of that key. Copies the texts. 0 or -ENOMEM. */
int trace_writer_info(struct trace_writer *w, const char *key, const char *value);

/* Add the next event; times must not fall. An event of `of` may be changed first, but for its
 * stack. EV_OUTSIDE, EV_WENT and EV_CHECKPOINT are left out. 0 or negative errno with err. */
int trace_writer_add(struct trace_writer *w, const struct event *e, struct err *err);

/* Write the file, which must not exist; on an error no part of it remains. 0 or negative errno
 * with err. */
int trace_writer_save(struct trace_writer *w, const char *path, struct err *err);

/* For extended.c: the id in the file of what an event names, which is defined there the first time.
 * A text of NULL, and an id of 0, is 0. */
uint32_t writer_string(struct trace_writer *w, const char *text);
uint32_t writer_stack(struct trace_writer *w, uint32_t id);
uint32_t writer_space(struct trace_writer *w, uint32_t id);

#endif
