/*
 * target.h - what the watcher asks of a watched process beside its trace: the cgroup that limits it
 * on this host. Reads only.
 */
#ifndef ANALYZER_CMD_WATCH_TARGET_H
#define ANALYZER_CMD_WATCH_TARGET_H

#include <stdint.h>

/* Return the directory of the cgroup (version 2) with the smallest limit above the process; the
 * caller frees it. NULL: version 1, or that pid is not the process that writes the trace: it has
 * ended, is in another pid namespace, or is another user's. `root` is prefixed to every path; only
 * tests need it. */
char *target_cgroup(const char *root, uint32_t pid, const char *trace);

#endif
