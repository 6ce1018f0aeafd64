/*
 * hook_allocators.h - other allocators' own entry points. They are not exported: a program that
 * asks whether there is a mallocx() (by dlsym or a weak reference) must get the answer it would get
 * without us. Instead, the slots of modules that import one are pointed to our wrappers.
 */
#ifndef SHIM_HOOK_ALLOCATORS_H
#define SHIM_HOOK_ALLOCATORS_H

#include <link.h>
#include <stdbool.h>

/* A visitor (visit.h). */
bool hook_allocators_visit(const struct dl_phdr_info *info);

#endif
