/*
 * kill.h - a process that was killed by SIGKILL, or whose end nobody saw: was it for want of
 * memory, and was it the kernel? kill.c has the rule.
 */
#ifndef ANALYZER_VERDICT_KILL_H
#define ANALYZER_VERDICT_KILL_H

#include "verdict/failure/failure.h"

/* Fill *out, and failure->kill_evidence when the process was killed; where a counter or a limit
 * explains the kill, also failure->kind and its limit. `victim`: the kernel's log says that its OOM
 * killer took the process. `s` may be NULL. */
void kill_read(const struct model *m, const struct supervised *s, bool victim,
    struct failure_view *failure, struct kill_view *out);

/* Was plenty of memory left, and did no count of OOM kills rise? */
bool kill_with_memory_left(const struct kill_view *k);
/* Did memory grow until the kill? Where plenty was left, slow but steady growth counts, too. */
bool kill_grew(const struct kill_view *k);
/* The failure that the kill is taken for where growth alone explains it. */
enum failure_kind kill_grew_kind(const struct kill_view *k);
/* And the sentence for it, static. */
const char *kill_grew_evidence(const struct kill_view *k);

#endif
