/*
 * kill.h - a process that SIGKILL ended: did memory run out, and did the kernel kill it? kill.c has
 * the rule.
 */
#ifndef ANALYZER_VERDICT_KILL_H
#define ANALYZER_VERDICT_KILL_H

#include "verdict/failure/failure.h"

/* Fill *out, and failure->kill_evidence if the process was killed; if a counter or a limit explains
 * the kill, also failure->kind and its limit. `victim`: the kernel's log says that its OOM killer
 * took the process. `s` may be NULL. */
void kill_read(const struct model *m, const struct supervised *s, bool victim,
    struct failure_view *failure, struct kill_view *out);

/* True if plenty of memory was left, and no count of OOM kills rose. */
bool kill_with_memory_left(const struct kill_view *k);
/* True if memory grew until the kill. If plenty was left, slow but steady growth counts, too. */
bool kill_grew(const struct kill_view *k);
/* Return the failure to assume when growth alone explains the kill. */
enum failure_kind kill_grew_kind(const struct kill_view *k);
/* Return the sentence for it, static. */
const char *kill_grew_evidence(const struct kill_view *k);

#endif
