/*
 * kill.h - a process that was killed by SIGKILL, or of which no end was seen: was it for want of
 * memory, and was it the kernel?
 */
#ifndef ANALYZER_VERDICT_KILL_H
#define ANALYZER_VERDICT_KILL_H

#include "verdict/failure.h"

/* `victim`: the kernel's log says that its OOM killer took the process. Fills *out, and where a
 * counter or a limit explains the kill, failure->kind and its limit. Sets failure->kill_evidence
 * whenever it was killed. */
void kill_read(const struct model *m, const struct trace_facts *facts, const struct supervised *s,
    bool victim, struct failure_view *failure, struct kill_view *out);

/* The words for a kill that only growth explains. */
const char *kill_grew_evidence(const struct kill_view *k);

#endif
