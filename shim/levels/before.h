/*
 * before.h - tells blocks from before an attach from later ones, so that their releases are counted
 * by size instead of being recorded without an acquisition. Keeps one bit for each place where a
 * later block begins: a hundredth of the heap that is in use, or two with another allocator than
 * the C library's. Lock-free; any thread may call at any time, signal handlers included.
 */
#ifndef SHIM_BEFORE_H
#define SHIM_BEFORE_H

#include <stdbool.h>

#include "levels/levels.h"

/* At an attach, before the first block is acquired through a wrapper: no block is known. */
void before_begin(void);

/* A block was acquired, or a release did not happen. */
void before_acquired(const void *block);

/* A block is about to be released. True: it is from before, and is counted. `foreign`: malloc does
 * not know it, and neither does anybody know its size. */
bool before_released(const void *block, bool foreign);

/* The release of a block did not happen. True: it was from before, and is no longer counted. */
bool before_unreleased(const void *block);

/* In the child of a fork, whose trace says nothing of blocks from before. */
void before_forked(void);

/* Append the levels of released blocks, if there was an attach; returns how many. */
#define BEFORE_LEVELS_MAX 2
unsigned before_levels(struct level *out);

#endif
