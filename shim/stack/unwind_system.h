/*
 * unwind_system.h - the system's libunwind, where there is one, for frames whose unwind information
 * our own reader does not understand. It is not linked to: it is looked up when such a frame was
 * met, at the next moment at which loading a library is safe.
 */
#ifndef SHIM_UNWIND_SYSTEM_H
#define SHIM_UNWIND_SYSTEM_H

#include "stack/unwind.h"

/* At a moment when the loader may be entered (not in an allocation). Does nothing until needed. */
void unwind_system_safe_moment(void);

/* Out of the frame at `at`. STEP_NO_CFI when libunwind is not there, or cannot either. */
enum unwind_step unwind_system_step(struct unwind_place *at);

#endif
