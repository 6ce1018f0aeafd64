/*
 * control.h - what `whyoom ctl` asks for while the program runs, by words in the header of its
 * trace: another mode, a pause. Looked at where a record is being written anyhow; nobody waits.
 */
#ifndef SHIM_CONTROL_H
#define SHIM_CONTROL_H

#include <stdbool.h>

#include "trace/trace_file.h"

extern uint32_t control_seen
    __attribute__((visibility("hidden"))); /* the latest that was answered */

static inline bool control_asked(void)
{
	return __builtin_expect(
	    __atomic_load_n(&trace_file_header->control.asked, __ATOMIC_RELAXED) != control_seen,
	    0);
}

/* Says in the header of a new trace how it is recorded; again whenever that changes. */
void control_begin(void);

/* Does it, by whichever thread comes first. True: blocks are recorded in another way from now on,
 * which is to be said in the trace. */
bool control_follow(void);

/* Mean and exact_from are 1 << *shift times what was asked for, from now on; *shift is what they
 * can be at most. False: not now, or each block is recorded. */
bool control_scale(unsigned *shift);

/* As many bytes as the sample has one for, of blocks under *exact_from: when nothing is paused. */
uint64_t control_mean(uint64_t *exact_from);
/* That is 1 << shift times what it was, from now on and for good. False: not now. */
bool control_thin(unsigned shift);

/* No new blocks are recorded now. */
bool control_paused(void);

/* In the child of a fork: its file has words of its own. The mode is its parent's. */
void control_forked(void);

#endif
