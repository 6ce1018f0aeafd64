/*
 * hook_visitors.h - the visitors (visit.h) of malloc's family, other allocators and look-ups, which
 * hook_dl.c shows each module to: they point the module's slots to wrappers.
 */
#ifndef SHIM_HOOK_VISITORS_H
#define SHIM_HOOK_VISITORS_H

#include <link.h>
#include <stdbool.h>

/* For a program that exports an allocator of its own. */
bool hook_malloc_visit(const struct dl_phdr_info *info);

/* For other allocators' own entry points. Their wrappers are not exported: a program that asks
 * whether there is a mallocx() (by dlsym or a weak reference) must get the same answer as without
 * us. */
bool hook_allocators_visit(const struct dl_phdr_info *info);

/* Once some library was loaded with RTLD_DEEPBIND, which binds to the C library's own functions, as
 * its scope precedes ours: point slots that lead to these to ours. */
bool hook_malloc_deepbind(const struct dl_phdr_info *info);
bool hook_lookup_deepbind(const struct dl_phdr_info *info);

/* Notes that there is such a library, so that RTLD_DEFAULT depends on the caller. */
void hook_lookup_deepbind_seen(void);

#endif
