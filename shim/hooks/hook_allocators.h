/*
 * hook_allocators.h - wraps other allocators' own entry points. The wrappers are not exported: a
 * program that asks whether there is a mallocx() (by dlsym or a weak reference) must get the same
 * answer as without us. Instead, the slots of modules that import one are pointed to them.
 */
#ifndef SHIM_HOOK_ALLOCATORS_H
#define SHIM_HOOK_ALLOCATORS_H

#include <link.h>
#include <stdbool.h>

/* A visitor (visit.h). */
bool hook_allocators_visit(const struct dl_phdr_info *info);

#endif
