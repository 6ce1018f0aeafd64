/*
 * readable.h - which parts of the stack can be read without a fault. Ranges are found by asking the
 * kernel about one page at a time, when a walk first needs it, and are kept while the thread's
 * stack pointer stays within. A stack in use is always readable; this is for walks that were led
 * astray by wrong unwind information, and for their ends.
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

/* Is the page of this address readable? A system call; any thread, signal-safe. */
bool readable_page(uintptr_t address);

bool readable_slow(struct readable *r, uintptr_t address);

/* Of an aligned word. */
static inline bool readable_word(struct readable *r, uintptr_t address)
{
	if (__builtin_expect(address & 7, 0))
		return false;
	return __builtin_expect(address - r->lo < r->span, 1) || readable_slow(r, address);
}

extern _Atomic uint64_t readable_epoch __attribute__((visibility("hidden")));
void readable_restart(struct readable *r, uintptr_t sp);

/* A walk starts at this stack pointer. */
static inline void readable_start(struct readable *r, uintptr_t sp)
{
	if (__builtin_expect(
		sp - r->lo >= r->span ||
		    r->epoch != atomic_load_explicit(&readable_epoch, memory_order_relaxed),
		0))
		readable_restart(r, sp);
}

/* The host unmapped or protected memory: every range is found anew. Any thread. */
void readable_forget(void);

#endif
