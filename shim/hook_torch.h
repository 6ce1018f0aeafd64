/*
 * hook_torch.h - PyTorch's caching allocator, seen from outside by the two functions through which
 * it reports to the profiler.
 */
#ifndef SHIM_HOOK_TORCH_H
#define SHIM_HOOK_TORCH_H

/* Modules came: says once in the trace whether PyTorch's blocks are recorded, and why not. */
void hook_torch_modules_changed(void);

/* In the child of a fork, when its trace is there: it is said again. */
void hook_torch_forked(void);

#endif
