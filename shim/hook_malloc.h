/*
 * hook_malloc.h - the malloc family's hooks where exporting them is not enough.
 */
#ifndef SHIM_HOOK_MALLOC_H
#define SHIM_HOOK_MALLOC_H

#include <stdbool.h>

/* At start and after dlopen. */
void hook_malloc_changed(void);

/* After a library came that was loaded with RTLD_DEEPBIND and so binds to the C library's own: its
 * slots, and those of what came with it, are pointed to ours. Takes the loader's list lock. False:
 * some are still being loaded; to be called again. */
bool hook_malloc_deepbind(void);

#endif
