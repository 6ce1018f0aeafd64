/*
 * trace_cleanup.h - keeps a directory readable: removes the traces of processes that recorded next
 * to nothing (a shell's `test`, `sed`, `uname`), and marks the trace of a program that exec
 * replaced.
 */
#ifndef SHIM_TRACE_CLEANUP_H
#define SHIM_TRACE_CLEANUP_H

#include <stdbool.h>
#include <stdint.h>

/* Fewer than 32 events and 64 KiB in all, no failure and nothing lost: read from the file itself.
 * `passed`: as of trace_file_clean_up(). False when in doubt. */
bool trace_cleanup_trivial(const char *path, uint64_t passed);

/* Is this the trace of the calling process's earlier image, which exec replaced? Then mark it so,
 * and remove it if it is trivial. Returns whether it was removed. */
bool trace_cleanup_former(const char *path);

/* Is this the trace of an image that exec replaced, earlier in the process of `last`? */
struct trace_header;
bool trace_cleanup_is_former(const char *path, const struct trace_header *last);

#endif
