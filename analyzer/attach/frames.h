/*
 * frames.h - the stack of a stopped thread of another process, by libdwfl. A stack counts only if
 * it was followed to its beginning: a guess is worse than none.
 */
#ifndef ANALYZER_ATTACH_FRAMES_H
#define ANALYZER_ATTACH_FRAMES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/target.h"

struct frames;

/* Open the modules of a process, whose mappings are read. It may run on. NULL: they cannot be
 * unwound, or no memory. */
struct frames *frames_open(const struct target *target);
void frames_close(struct frames *f);
/* Unwind a thread that the caller traces and that is stopped: program counters, innermost first.
 * Returns how many; 0: the stack could not be followed to its beginning, or has more than `most`
 * frames. */
size_t frames_of(struct frames *f, pid_t tid, uint64_t *pcs, size_t most);

#endif
