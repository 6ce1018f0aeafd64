/*
 * rights.h - the rights that a process gave up, as its trace's header has them, and in words.
 */
#ifndef ANALYZER_TRACE_RIGHTS_H
#define ANALYZER_TRACE_RIGHTS_H

#include "trace/clock.h"
#include "trace/cursor.h"
#include "trace/trace.h"
#include "util/text/str.h"
#include "whyoom/trace.h"

/* From the header, at that place of it. */
struct trace_rights rights_read(struct cursor *c);
/* Moments as of the clock, which is finished. */
struct trace_rights_facts rights_facts(const struct trace_rights *raw, struct clock *clock);

#endif
