/*
 * hook_torch.h - observes PyTorch's caching allocator by the two functions through which it reports
 * to the profiler.
 */
#ifndef SHIM_HOOK_TORCH_H
#define SHIM_HOOK_TORCH_H

#include <link.h>
#include <stdbool.h>

/* A visitor (visit.h): when PyTorch is loaded, writes to the trace whether its blocks are recorded,
 * and why not. */
bool hook_torch_visit(const struct dl_phdr_info *info);

/* Writes that again for the trace of a fork's child. */
void hook_torch_forked(void);

#endif
