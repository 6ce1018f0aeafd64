/*
 * hook_dl.h - notices that modules are loaded and unloaded.
 */
#ifndef SHIM_HOOK_DL_H
#define SHIM_HOOK_DL_H

#include <stdbool.h>

/* Visits the modules that are loaded when the program begins. */
void hook_dl_init(void);

/* Returns the function to which a dlopen of this name, called from `caller`, jumps. */
void *hook_dlopen_before(const char *name, int mode, const void *caller);

/* Shows the visitors the modules that came since the last call. Pre: not inside the loader. */
void hook_dl_poll(void);

/* Is no thread showing the visitors what a dlopen or dlclose has changed? */
bool hook_dl_is_idle(void);

/* Forgets pending changes, in the child of a fork. */
void hook_dl_forked(void);

#endif
