/*
 * hook_malloc.h - the malloc family's hooks where exporting them is not enough.
 */
#ifndef SHIM_HOOK_MALLOC_H
#define SHIM_HOOK_MALLOC_H

#include <link.h>
#include <stdbool.h>

/* A visitor (visit.h), for a program with an allocator of its own. */
bool hook_malloc_visit(const struct dl_phdr_info *info);

/* For one once some library was loaded with RTLD_DEEPBIND and so binds to the C library's own: its
 * slots, and those of what came with it, are pointed to ours. */
bool hook_malloc_deepbind(const struct dl_phdr_info *info);

#endif
