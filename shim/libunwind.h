/*
 * libunwind.h - the system's libunwind, where there is one, for frames whose unwind information our
 * own reader does not understand. It is not linked to: it is looked up when such a frame was met,
 * at the next moment at which loading a library is safe.
 */
#ifndef SHIM_LIBUNWIND_H
#define SHIM_LIBUNWIND_H

#include "unwind.h"

/* At a moment when the loader may be entered (not in an allocation). Does nothing until needed. */
void libunwind_safe_moment(void);

/* Out of the frame at `at`. STEP_NO_CFI when libunwind is not there, or cannot either. */
enum unwind_step libunwind_step(struct unwind_place *at);

#endif
