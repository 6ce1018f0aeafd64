/*
 * symbols.h - finds functions of other modules by reading their dynamic symbol tables. Does not
 * call dlsym: so it allocates nothing, sets no dlerror, needs no libdl where that is a library of
 * its own, and cannot enter our hooks. Takes the loader's list lock (dl_iterate_phdr) briefly: not
 * for hot paths. Any thread.
 */
#ifndef SHIM_RESOLVE_H
#define SHIM_RESOLVE_H

#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct timespec;

/* What our wrappers call. Set before the first wrapper forwards; NULL: nobody defines it. */
struct symbols_real {
	void *(*malloc)(size_t);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	void (*free)(void *);
	int (*posix_memalign)(void **, size_t, size_t);
	void *(*aligned_alloc)(size_t, size_t);
	void *(*memalign)(size_t, size_t);
	void *(*valloc)(size_t);
	void *(*pvalloc)(size_t);
	size_t (*malloc_usable_size)(void *);
	void *(*mmap)(void *, size_t, int, int, int, off_t);
	int (*munmap)(void *, size_t);
	void *(*mremap)(void *, size_t, size_t, int, ...);
	int (*mprotect)(void *, size_t, int);
	int (*brk)(void *);
	void *(*sbrk)(intptr_t);
	int (*madvise)(void *, size_t, int);
	void *(*shmat)(int, const void *, int);
	int (*shmdt)(const void *);
	int (*posix_fallocate)(int, off_t, off_t);
	int (*posix_fallocate64)(int, off64_t, off64_t);
	int (*fallocate)(int, int, off_t, off_t);
	int (*fallocate64)(int, int, off64_t, off64_t);
	long (*syscall)(long, ...);
	void *(*dlopen)(const char *, int);
	int (*dlclose)(void *);
	int (*execve)(const char *, char *const *, char *const *);
	int (*execv)(const char *, char *const *);
	int (*execvp)(const char *, char *const *);
	int (*execvpe)(const char *, char *const *, char *const *);
	int (*execveat)(int, const char *, char *const *, char *const *, int);
	int (*fexecve)(int, char *const *, char *const *);
	int (*posix_spawn)(
	    pid_t *, const char *, const void *, const void *, char *const *, char *const *);
	int (*posix_spawnp)(
	    pid_t *, const char *, const void *, const void *, char *const *, char *const *);
	int (*fork)(void);
	int (*vfork)(void);
	int (*clone)(int (*)(void *), void *, int, void *, ...);
	int (*prctl)(int, ...);
	int (*pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	int (*pthread_attr_getstacksize)(const pthread_attr_t *, size_t *);
	void *(*dlsym)(void *, const char *);
	void *(*dlvsym)(void *, const char *, const char *);
	void (*exit_now)(int); /* _exit */
	void (*abort)(void);
#define RIGHTS_API(name, parameters, arguments, right, uid, when) int(*name) parameters;
#define RIGHTS_CALL(name, right, uid, when)
#include "base/rights_api.def"
#undef RIGHTS_API
#undef RIGHTS_CALL
};
extern struct symbols_real real __attribute__((visibility("hidden")));

/* The program itself exports malloc: it was linked with an allocator. Then calls of libraries bind
 * to that, past our exports, and `real` holds the program's functions. */
extern bool symbols_program_owns;

/* A sanitizer's runtime is there, which replaces malloc and more itself and wants to come first: we
 * pass everything on and record nothing. */
extern bool symbols_sanitized;

/* The C library is not glibc: likewise. */
bool symbols_foreign(void);

/* Fills `real`; at once when it has been done. */
void symbols_all(void);

/* All that follows is found in the loader's list, and in the child of a fork not, where that may
 * not be asked (loader.h); but for symbols_next() and symbols_needed(), whose answers the program
 * cannot do without.
 *
 * The default definition of a function or object in the first loaded module that has one, ours
 * left out; NULL when nobody defines it. An ifunc is resolved. */
void *symbols_find(const char *name);

/* The same for many in one module, by the names' hashes: found[i] is left alone where it is not
 * NULL. Returns whether any was found. */
uint32_t symbols_hash(const char *name);
bool symbols_defined(const struct dl_phdr_info *info, const char *const *names,
    const uint32_t *hashes, void **found, size_t count);

/* All symbols by which the module means one of these names, its own definitions and what it
 * imports: up to `room` of them, as its relocations number them, each with its name's index. */
struct symbols_symbol {
	uint32_t symbol, name;
};
size_t symbols_symbols(const struct dl_phdr_info *info, const char *const *names,
    const uint32_t *hashes, size_t count, struct symbols_symbol *out, size_t room);

/* The same, in modules loaded after ours only, as RTLD_NEXT. */
void *symbols_next(const char *name);

/* The same, in the one module that contains an address. */
void symbols_in(const void *address, const char *const *names, void **found, size_t count);

/* What an undefined symbol of the module at `address` stands for, when only one definition can be
 * meant: one of the version that the module asks for, or of none; NULL when there is none, or when
 * several could be. */
void *symbols_for(const void *address, const char *name);

/* In the module at `address`, or in the first of the libraries that it needs; NULL: in none. */
void *symbols_needed(const void *address, const char *name);

/* The module that contains an address. */
struct symbols_module {
	uintptr_t low, high; /* all its segments */
	char path[512]; /* of the executable: /proc/self/exe's target */
	char soname[64]; /* empty: none */
};
bool symbols_module_of(const void *address, struct symbols_module *out);

/* Modules loaded and unloaded since the process started; false when the loader does not count. */
bool symbols_counts(uint64_t *loaded, uint64_t *unloaded);

#endif
