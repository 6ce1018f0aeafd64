/*
 * hook_malloc.h - the malloc family's hooks where exporting them is not enough.
 */
#ifndef SHIM_HOOK_MALLOC_H
#define SHIM_HOOK_MALLOC_H

/* At start and after dlopen. */
void hook_malloc_changed(void);

#endif
