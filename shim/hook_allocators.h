/*
 * hook_allocators.h - other allocators' own entry points. They are not exported: a program that
 * asks whether there is a mallocx() (by dlsym or a weak reference) must get the answer it would get
 * without us. Instead, the slots of modules that import one are pointed to our wrappers.
 */
#ifndef SHIM_HOOK_ALLOCATORS_H
#define SHIM_HOOK_ALLOCATORS_H

#include <stdbool.h>

/* Looks through the modules that came since the last time; at start and after dlopen. False: some are
 * still being loaded; to be called again. */
bool hook_allocators_changed(void);

#endif
