/*
 * file_gaps.h - unused ranges of the trace file between chunks; later chunks may take them. Any
 * thread. Nothing waits: a thread that finds the table in use goes without, because it may be a
 * signal handler that interrupted the user. A range that is lost that way stays empty.
 */
#ifndef SHIM_FILE_GAPS_H
#define SHIM_FILE_GAPS_H

#include <stdbool.h>
#include <stdint.h>

/* Add a gap. `punched`: the file system has its space back; otherwise it still takes space and
 * reads as zeros. */
void file_gaps_add(uint64_t offset, uint64_t bytes, bool punched);

/* Take `bytes` from a gap. False: there is none so large. */
bool file_gaps_take(uint64_t *offset, uint32_t bytes, bool *punched);

/* Forget all gaps: the file is another one. */
void file_gaps_forget(void);

#endif
