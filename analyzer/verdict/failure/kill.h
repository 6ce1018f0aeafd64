/*
 * kill.h - a process that was killed by SIGKILL, or of which no end was seen: was it for want of
 * memory, and was it the kernel?
 */
#ifndef ANALYZER_VERDICT_KILL_H
#define ANALYZER_VERDICT_KILL_H

#include "verdict/failure/failure.h"

/* `victim`: the kernel's log says that its OOM killer took the process. Fills *out, and where a
 * counter or a limit explains the kill, failure->kind and its limit. Sets failure->kill_evidence
 * whenever it was killed. */
void kill_read(const struct model *m, const struct trace_facts *facts, const struct supervised *s,
    bool victim, struct failure_view *failure, struct kill_view *out);

/* Was more left of the memory than any killer waits for, and did no count of OOM kills rise? */
bool kill_with_memory_left(const struct kill_view *k);
/* Did memory grow until the kill? */
bool kill_grew(const struct kill_view *k);
/* What that kill is taken for, where nothing but growth explains it. */
enum failure_kind kill_grew_kind(const struct kill_view *k);
/* The words for it. */
const char *kill_grew_evidence(const struct kill_view *k);

#endif
