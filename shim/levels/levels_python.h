/*
 * levels_python.h - what the interpreter's own allocator for small objects says it holds. It takes
 * arenas from the kernel and gives one back only when the last object in it is gone; how full they
 * are nobody outside knows. So the arenas are kept in a table as they come and go, and the headers
 * of their pools are read from time to time: at a failure, and when the process has grown by an
 * eighth since, as who is killed cannot be asked any more.
 *
 * Nothing of the interpreter is called and no lock of anybody's is taken, so any thread may ask,
 * also in the child of a fork. An arena may be unmapped, and a pool change, while it is read: the
 * kernel copies, and an answer is what it is worth. At most PYTHON_PROBES pools are looked at,
 * whatever the process holds; of more, that many are chosen evenly.
 */
#ifndef SHIM_LEVELS_PYTHON_H
#define SHIM_LEVELS_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "levels/levels.h"

#define LEVELS_PYTHON_MAX 3
#define PYTHON_PROBES 4096u

/* An interpreter of that minor version of Python 3 has its code in [low, high). Once; a version
 * whose arenas are not known is never asked. */
void levels_python_found(unsigned minor, uintptr_t low, uintptr_t high);
/* At start, and in the child of a fork, which has its parent's arenas. */
void levels_python_init(void);

/* After a mmap of private anonymous memory, wherever it liked, by code at `caller`; before a
 * munmap. Any thread, no signal handler. */
void levels_python_mapped(uintptr_t address, size_t length, uintptr_t caller);
void levels_python_unmapped(uintptr_t address, size_t length);

/* Is it time, after a failure (resident 0) or as so much is resident now? True for one thread. */
bool levels_python_due(uint64_t now_ticks, uint64_t resident);
/* The number filled in: 0 when there are no arenas, or they cannot be read. */
unsigned levels_python_read(struct level *out);

#endif
