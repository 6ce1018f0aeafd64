/*
 * reserve.h - address space kept aside for when the process can get no more (RLIMIT_AS,
 * RLIMIT_DATA, too many mappings): then the trace matters most. Small tables come from pages that
 * are writable from the start; chunks are mapped over ranges that are held without access, or that
 * a sealed chunk has just left. Lock-free, any thread, signal-safe; no page of it is touched before
 * it is used.
 */
#ifndef SHIM_RESERVE_H
#define SHIM_RESERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Once, when recording starts; sys_pages() falls back to it from then on. */
void reserve_init(void);

/* A range (a multiple of 64 KiB) to be replaced by a mapping with MAP_FIXED; NULL: none is left. */
void *reserve_take(size_t bytes);

/* A range that was taken, and could not be replaced. */
void reserve_give_back(void *range, size_t bytes);

/* The mapping of ours there is no longer wanted: if the reserve needs it, it becomes a range of
 * the reserve, without a moment in between in which the host could get it. False: unmap it. */
bool reserve_keep(void *mapping, size_t bytes);

/* The kernel has refused a mapping, or granted one: the reserve saves, or is filled up again. */
void reserve_refused(void);
void reserve_granted(void);

/* Address space of the ranges; the pages are counted by sys_own_bytes(). */
uint64_t reserve_bytes(void);

#endif
