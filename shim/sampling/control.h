/*
 * control.h - obeys `whyoom ctl` while the program runs: another mode, or a pause. The commands
 * come in the header of the trace. Checked where a record is written anyway; nothing waits.
 */
#ifndef SHIM_CONTROL_H
#define SHIM_CONTROL_H

#include <stdbool.h>

#include "trace/trace_file.h"

extern uint32_t control_seen
    __attribute__((visibility("hidden"))); /* the latest command that was answered */

static inline bool control_asked(void)
{
	return __builtin_expect(
	    __atomic_load_n(&trace_file_header->control.asked, __ATOMIC_RELAXED) != control_seen,
	    0);
}

/* Show the settings in the header of a new trace. */
void control_publish(void);

/* Obey the pending command; the first thread that comes does it. Returns whether blocks are
 * recorded differently from now on; the caller records that. */
bool control_follow(void);

/* Sample with 1 << *shift times the requested mean and exact_from from now on. *shift becomes what
 * is possible at most. False: not now, or every block is recorded. */
bool control_scale(unsigned *shift);

/* Return the mean of the sample, in bytes, as if nothing were paused. Blocks of *exact_from bytes
 * or more are all recorded. */
uint64_t control_mean(uint64_t *exact_from);
/* Multiply the mean by 1 << shift for good. False: not now. */
bool control_coarsen(unsigned shift);

/* Are new blocks left unrecorded at present? */
bool control_paused(void);

/* At an attach: what an earlier recording was told no longer counts. */
void control_attach(void);

/* In the child of a fork: its header has no command yet. The mode is the parent's. */
void control_forked(void);

#endif
