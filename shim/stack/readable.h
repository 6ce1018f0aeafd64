/*
 * readable.h - which parts of the stack can be read without a fault. Asks the kernel about one page
 * at a time, when a walk first needs it, and keeps the ranges while the thread's stack pointer
 * stays within. A stack in use is always readable; this protects walks that wrong unwind
 * information leads astray, and the ends of walks.
 */
#ifndef SHIM_READABLE_H
#define SHIM_READABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define READABLE_RANGES 4

struct readable {
	uintptr_t lo, span; /* an 8-byte word at a is readable if a - lo < span */
	uint64_t epoch;
	uint32_t next; /* of ranges[] to be replaced */
	struct {
		uintptr_t lo, hi;
	} ranges[READABLE_RANGES];
};

/* Asks the kernel whether the page of this address is readable. Any thread, signal-safe. */
bool readable_page(uintptr_t address);

bool readable_slow(struct readable *r, uintptr_t address);

/* Says whether the word can be read; false also if it is not aligned to 8. */
static inline bool readable_word(struct readable *r, uintptr_t address)
{
	if (__builtin_expect(address & 7, 0))
		return false;
	return __builtin_expect(address - r->lo < r->span, 1) || readable_slow(r, address);
}

extern _Atomic uint64_t readable_epoch __attribute__((visibility("hidden")));
void readable_restart(struct readable *r, uintptr_t sp);

/* Prepares for a walk from this stack pointer. */
static inline void readable_start(struct readable *r, uintptr_t sp)
{
	if (__builtin_expect(
		sp - r->lo >= r->span ||
		    r->epoch != atomic_load_explicit(&readable_epoch, memory_order_relaxed),
		0))
		readable_restart(r, sp);
}

/* Makes every thread find its ranges anew. Any thread. */
void readable_forget(void);

#endif
