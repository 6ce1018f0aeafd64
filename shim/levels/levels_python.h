/*
 * levels_python.h - what the interpreter's allocator for small objects holds. It takes arenas from
 * the kernel and returns one only when its last object is gone; nothing outside shows how full they
 * are. So a table follows the arenas as they come and go, and the headers of their pools are read
 * from time to time: at a failure, and when the process has grown by an eighth, because a killed
 * process cannot be asked any more.
 *
 * Nothing of the interpreter is called and no lock of others is taken: any thread may ask, also in
 * the child of a fork. An arena may be unmapped, and a pool may change, while it is read: the
 * kernel copies, and the answer is approximate. At most PYTHON_PROBES pools are read; of more, that
 * many are chosen evenly.
 */
#ifndef SHIM_LEVELS_PYTHON_H
#define SHIM_LEVELS_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "levels/levels.h"

#define LEVELS_PYTHON_MAX 3
#define PYTHON_PROBES 4096u

/* The code of an interpreter of Python 3.`minor` lies in [low, high). Once. A version with an
 * unknown layout is never asked. */
void levels_python_found(unsigned minor, uintptr_t low, uintptr_t high);
/* At start, and in the child of a fork, which has its parent's arenas. */
void levels_python_init(void);

/* After an mmap of private anonymous memory, at an address of the kernel's choice, by code at
 * `caller`; before a munmap. Any thread, no signal handler. */
void levels_python_mapped(uintptr_t address, size_t length, uintptr_t caller);
void levels_python_unmapped(uintptr_t address, size_t length);

/* Is it time, after a failure (resident 0) or with `resident` bytes now? True for one thread. */
bool levels_python_due(uint64_t now_ticks, uint64_t resident);
/* Returns the number filled in; 0: there are no arenas, or they cannot be read. */
unsigned levels_python_read(struct level *out);

#endif
