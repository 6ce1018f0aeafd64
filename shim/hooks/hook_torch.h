/*
 * hook_torch.h - PyTorch's caching allocator, seen from outside by the two functions through which
 * it reports to the profiler.
 */
#ifndef SHIM_HOOK_TORCH_H
#define SHIM_HOOK_TORCH_H

#include <link.h>
#include <stdbool.h>

/* A visitor (visit.h): once PyTorch is there, the trace says whether its blocks are recorded, and
 * why not. */
bool hook_torch_visit(const struct dl_phdr_info *info);

/* In the child of a fork, when its trace is there: it is said again. */
void hook_torch_forked(void);

#endif
