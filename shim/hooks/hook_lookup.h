/*
 * hook_lookup.h - dlsym and dlvsym for libraries that were loaded with RTLD_DEEPBIND: these bind to
 * the C library's own functions, as their scope precedes ours.
 */
#ifndef SHIM_HOOK_LOOKUP_H
#define SHIM_HOOK_LOOKUP_H

#include <link.h>
#include <stdbool.h>

/* Notes that there is such a library, so that RTLD_DEFAULT depends on the caller. */
void hook_lookup_deepbind_seen(void);

/* A visitor (visit.h) from then on: points slots that lead to the C library's look-ups to ours. */
bool hook_lookup_deepbind(const struct dl_phdr_info *info);

#endif
