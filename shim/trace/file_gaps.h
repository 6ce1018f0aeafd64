/*
 * file_gaps.h - ranges of the trace file where nothing is, between chunks: later chunks may lie
 * there. Any thread, no waiting: who meets another at it goes without, as that may be the very code
 * that a signal handler interrupted; a range that is lost so stays empty.
 */
#ifndef SHIM_HOLES_H
#define SHIM_HOLES_H

#include <stdbool.h>
#include <stdint.h>

/* `punched`: the file system has its space back; otherwise it is still the file's, all zeros. */
void file_gaps_add(uint64_t offset, uint64_t bytes, bool punched);

/* False: there is none so large. */
bool file_gaps_take(uint64_t *offset, uint32_t bytes, bool *punched);

/* Another file: none. */
void file_gaps_forget(void);

#endif
