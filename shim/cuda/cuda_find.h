/*
 * cuda_find.h - finds the wrapper for a name or function of CUDA. Owns the real functions of the
 * wrappers and decides which callers get wrappers: libcuda itself, UCX and NVIDIA's tools do not,
 * as they look functions up to patch them or to bypass other tools.
 *
 * Any thread. Takes the loader's list lock briefly, except in cuda_wanted().
 */
#ifndef SHIM_CUDA_FIND_H
#define SHIM_CUDA_FIND_H

#include <link.h>
#include <stdbool.h>

/* Says whether there is a wrapper for this name. Cheap, as every dlsym calls it. */
bool cuda_wanted(const char *name);

/* Says whether the caller at this address gets wrappers. */
bool cuda_caller_wants(const void *caller);

/* Says whether the function lies in libcuda. */
bool cuda_is_driver_function(const void *function);

/* Returns the wrapper for `function`, the result of a look-up of this symbol; `function` itself if
 * it is not in libcuda or has no wrapper. */
void *cuda_wrapper_by_symbol(const char *name, void *function);

/* Returns the same for a result of cuGetProcAddress. `version`: as requested; 0: unknown. */
void *cuda_wrapper_by_request(const char *name, int version, bool per_thread, void *function);

/* A visitor (visit.h): points the module's slots to wrappers. */
bool cuda_modules_visit(const struct dl_phdr_info *info);

/* At an attach: say in the trace that the driver's functions may have been fetched before. */
void cuda_find_attach(void);

/* Writes the facts again for the trace of a fork's child. */
void cuda_find_forked(void);

#endif
