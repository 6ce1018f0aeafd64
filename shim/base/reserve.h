/*
 * reserve.h - address space kept for when the process gets no more (RLIMIT_AS, RLIMIT_DATA, too
 * many mappings): then the trace matters most. Small tables use pages that are writable from the
 * start; chunks are mapped over ranges without access, or over the range of a chunk that was just
 * sealed. Lock-free, any thread, signal-safe. No page is touched before it is used.
 */
#ifndef SHIM_RESERVE_H
#define SHIM_RESERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fill the reserve when recording starts, once; from then on sys_pages() falls back to it. */
void reserve_init(void);

/* Take a range, a multiple of 64 KiB, to be replaced by a mapping with MAP_FIXED; NULL: none
 * left. */
void *reserve_take(size_t bytes);

/* Return a range that could not be replaced. */
void reserve_give_back(void *range, size_t bytes);

/* Turn one of our mappings into a range of the reserve, if it needs one, without a moment in which
 * the host could get the range. False: the caller unmaps it. */
bool reserve_keep(void *mapping, size_t bytes);

/* Report that the kernel refused a mapping or granted one: the reserve keeps more, or is filled up
 * again. */
void reserve_refused(void);
void reserve_granted(void);

/* Return the address space of the ranges, bytes; sys_own_bytes() counts the pages. */
uint64_t reserve_bytes(void);

#endif
