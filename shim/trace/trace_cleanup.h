/*
 * trace_cleanup.h - keeps a directory readable: the files of processes that recorded next to
 * nothing (a shell's `test`, `sed`, `uname`) are removed, and the file of a program that was
 * replaced by exec says so.
 */
#ifndef SHIM_LITTER_H
#define SHIM_LITTER_H

#include <stdbool.h>
#include <stdint.h>

/* Fewer than 32 events and 64 KiB in all, no failure and nothing lost: read from the file itself.
 * `passed`: as of trace_file_tidy(). False when in doubt. */
bool trace_cleanup_trivial(const char *path, uint64_t passed);

/* Is this the file of the calling process's former image, the one that exec replaced? Then it is
 * marked so, and removed when it is trivial: true. */
bool trace_cleanup_former(const char *path);

/* Is this the file of an image that exec replaced, in the process of `last`, which came later? */
struct trace_header;
bool litter_is_former(const char *path, const struct trace_header *last);

#endif
