/*
 * agree.h - compares, at the place where it is called, the captured stack with what a reference
 * unwinder says, frame by frame. The reference is libunwind's unw_step, or, where that is not to be
 * had, libgcc's _Unwind_Backtrace.
 */
#ifndef TESTS_STACK_AGREE_H
#define TESTS_STACK_AGREE_H

#include <cstdint>

struct agree_counts {
	uint64_t stacks, frames, bad, deepest, unfinished;
};

/* Captures here and compares, with the reference and with a walk that uses nothing of earlier ones.
 */
void agree_here();

agree_counts agree_totals();

#endif
