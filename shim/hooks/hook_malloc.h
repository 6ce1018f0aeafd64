/*
 * hook_malloc.h - points modules to the malloc hooks where exporting them is not enough.
 */
#ifndef SHIM_HOOK_MALLOC_H
#define SHIM_HOOK_MALLOC_H

#include <link.h>
#include <stdbool.h>

/* A visitor (visit.h), for a program that exports an allocator of its own. */
bool hook_malloc_visit(const struct dl_phdr_info *info);

/* A visitor once some library was loaded with RTLD_DEEPBIND: points slots that lead to the C
 * library's functions to ours. */
bool hook_malloc_deepbind(const struct dl_phdr_info *info);

#endif
