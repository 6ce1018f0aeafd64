/*
 * cuda_find.h - from a name or a pointer of CUDA's to the wrapper for it. Owns the real functions
 * of the wrappers, and the decision who is given a wrapper at all: libcuda itself, UCX and NVIDIA's
 * own tools are not, as they look functions up in order to patch them or to call past everybody
 * else.
 *
 * Any thread. Takes the loader's list lock briefly, except in cuda_wanted().
 */
#ifndef SHIM_CUDA_FIND_H
#define SHIM_CUDA_FIND_H

#include <link.h>
#include <stdbool.h>

/* Could a look-up of this name be answered with a wrapper? Cheap: for every dlsym. */
bool cuda_wanted(const char *name);

/* Is whoever asks from `caller` given wrappers? */
bool cuda_caller_wants(const void *caller);

/* Does this function lie in libcuda? */
bool cuda_in_driver(const void *function);

/* The wrapper for `function`, which is what a symbol of this name led to; `function` itself when it
 * is none of libcuda's, or none that is wrapped. */
void *cuda_by_symbol(const char *name, void *function);

/* The same for an answer of cuGetProcAddress: version as it was asked for, 0 when unknown. */
void *cuda_by_request(const char *name, int version, bool per_thread, void *function);

/* A visitor (visit.h): the slots of modules are pointed to wrappers. */
bool cuda_modules_visit(const struct dl_phdr_info *info);

/* In the child of a fork, when its trace is there: what was said is said again. */
void cuda_find_forked(void);

#endif
