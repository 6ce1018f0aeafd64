/*
 * hook_lookup.h - the look-ups dlsym and dlvsym, for libraries that were loaded with RTLD_DEEPBIND:
 * they bind to the C library's own, as their scope comes before the one that we are in.
 */
#ifndef SHIM_HOOK_LOOKUP_H
#define SHIM_HOOK_LOOKUP_H

#include <link.h>
#include <stdbool.h>

/* Once there is such a library: RTLD_DEFAULT does not mean the same for all. */
void hook_lookup_deepbind_seen(void);

/* A visitor (visit.h) from then on: the slots of such libraries, and of those that came with them,
 * are pointed to ours. */
bool hook_lookup_deepbind(const struct dl_phdr_info *info);

#endif
