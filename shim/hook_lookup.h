/*
 * hook_lookup.h - the look-ups dlsym and dlvsym, for libraries that were loaded with RTLD_DEEPBIND: they
 * bind to the C library's own, as their scope comes before the one that we are in.
 */
#ifndef SHIM_HOOK_LOOKUP_H
#define SHIM_HOOK_LOOKUP_H

#include <stdbool.h>

/* After such a library came: its slots, and those of what came with it, are pointed to ours. Takes the
 * loader's list lock. False: some are still being loaded; to be called again. */
bool hook_lookup_deepbind(void);

#endif
