/*
 * symbols.h - finds functions of other modules in their dynamic symbol tables. Does not call dlsym:
 * it allocates nothing, sets no dlerror, needs no libdl and cannot enter our hooks. Takes the
 * loader's list lock briefly: not for hot paths. Any thread.
 */
#ifndef SHIM_SYMBOLS_H
#define SHIM_SYMBOLS_H

#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct timespec;

/* The functions that our wrappers forward to. Set before the first wrapper runs; NULL:
 * undefined. */
struct symbols_real {
#define REAL_API(type, name, parameters) type(*name) parameters;
#include "loaded/real.def"
#undef REAL_API
#define RIGHTS_API(name, parameters, arguments, right, uid, when) int(*name) parameters;
#define RIGHTS_CALL(name, right, uid, when)
#include "base/rights_api.def"
#undef RIGHTS_API
#undef RIGHTS_CALL
};
extern struct symbols_real real __attribute__((visibility("hidden")));

/* The program itself exports malloc: it was linked with an allocator. Libraries' calls then bind to
 * it, not to our exports, and `real` holds the program's functions. */
extern bool symbols_program_owns;

/* A sanitizer's runtime is loaded. It replaces malloc and more, and wants to come first: we forward
 * every call and record nothing. */
extern bool symbols_sanitized;

/* Is the C library another one than glibc? Then the same holds. */
bool symbols_foreign(void);

/* Do the program's calls bind to our exports? Yes where the loader searches us before the C
 * library: preloaded or linked. No where a dlopen brought us into a running process, or another
 * namespace.
 */
bool symbols_in_front(void);

/* Fill `real`. Returns at once if that is done. */
void symbols_all(void);

/*
 * The following functions search the loader's list. In the child of a fork they find nothing while
 * the list may not be walked (loader.h), except symbols_next() and symbols_needed(), whose results
 * the program cannot do without.
 *
 * Find the default definition of a function or object in the first loaded module that has one,
 * except ours; an ifunc is resolved. NULL: undefined.
 */
void *symbols_find(const char *name);

/* Find several names in one module, by their hashes, symbols_hash(). Entries of found[] that are
 * not NULL stay. Returns whether any was found. */
uint32_t symbols_hash(const char *name);
bool symbols_defined(const struct dl_phdr_info *info, const char *const *names,
    const uint32_t *hashes, void **found, size_t count);

/* Find all symbols that the module defines or imports under one of these names. Fills in up to
 * `room` of them: the number that its relocations use and the index of the name. */
struct symbols_symbol {
	uint32_t symbol, name;
};
size_t symbols_of_names(const struct dl_phdr_info *info, const char *const *names,
    const uint32_t *hashes, size_t count, struct symbols_symbol *out, size_t room);

/* Find a symbol in the modules loaded after ours, like RTLD_NEXT. */
void *symbols_next(const char *name);

/* Find symbols in the module that contains `address`. */
void symbols_in(const void *address, const char *const *names, void **found, size_t count);

/* Find the definition for an undefined symbol of the module at `address` if only one qualifies: one
 * of the version that the module asks for, or without a version. NULL: none, or several. */
void *symbols_for(const void *address, const char *name);

/* Find a symbol in the module at `address`, or in the first library it needs that has it; NULL: in
 * none. */
void *symbols_needed(const void *address, const char *name);

/* Describe the module that contains `address`. False: none. */
struct symbols_module {
	uintptr_t low, high; /* all its segments */
	char path[512]; /* the executable's: the target of /proc/self/exe */
	char soname[64]; /* empty: none */
};
bool symbols_module_of(const void *address, struct symbols_module *out);

/* Return how many modules were loaded and unloaded since the start. False: the loader does not
 * count. */
bool symbols_counts(uint64_t *loaded, uint64_t *unloaded);

#endif
