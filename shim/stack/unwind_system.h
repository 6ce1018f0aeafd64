/*
 * unwind_system.h - the system's libunwind, if there is one, for frames whose unwind information
 * our reader does not understand. Not linked to: loaded after a walk has met such a frame, when the
 * loader may be entered.
 */
#ifndef SHIM_UNWIND_SYSTEM_H
#define SHIM_UNWIND_SYSTEM_H

#include "stack/unwind.h"

/* Loads libunwind if a walk needed it. Pre: the loader may be entered (not in an allocation). */
void unwind_system_load(void);

/* Steps out of the frame at *at. STEP_NO_CFI: libunwind is not loaded, or cannot either. */
enum unwind_step unwind_system_step(struct unwind_state *at);

#endif
