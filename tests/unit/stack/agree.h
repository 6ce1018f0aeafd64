/* agree.h - compares the caller's captured stack with a reference unwinder's, frame by frame:
 * libunwind's unw_step, or libgcc's _Unwind_Backtrace if libunwind is missing. */
#ifndef TESTS_STACK_AGREE_H
#define TESTS_STACK_AGREE_H

#include <cstdint>

struct agree_counts {
	uint64_t stacks, frames, bad, deepest, unfinished;
};

/* Captures and compares with the reference, and with a walk that reuses nothing. */
void agree_here();

agree_counts agree_totals();

#endif
