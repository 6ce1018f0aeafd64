/*
 * rights.h - the rights that a process gave up: from the header of its trace, and as text.
 */
#ifndef ANALYZER_TRACE_RIGHTS_H
#define ANALYZER_TRACE_RIGHTS_H

#include "trace/clock.h"
#include "trace/cursor.h"
#include "trace/trace.h"
#include "util/text/str.h"
#include "whyoom/trace.h"

/* Read them from the header; `c` stands at the field. */
struct trace_rights rights_read(struct cursor *c);
/* Convert the times; clock_finish() must have been called. */
struct trace_rights_facts rights_facts(const struct trace_rights *raw, struct clock *clock);

#endif
