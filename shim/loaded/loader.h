/*
 * loader.h - the loader's list of modules. dl_iterate_phdr takes a lock of the loader's that fork
 * leaves as it is: whoever forks while another thread has it gets a child in which nobody ever
 * comes to that list again, nor to a dlopen. So no thread is there for us while one forks by libc's
 * fork; and in the child of any fork nobody goes there for us until the list is seen to have
 * changed: then the lock was free since. That is seen without it.
 */
#ifndef SHIM_LOADER_H
#define SHIM_LOADER_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int loader_callback(struct dl_phdr_info *, size_t, void *);

/* At start: the C library's _dl_find_object, which takes no lock; NULL: it has none. */
void loader_init(void *find_object);

/* dl_iterate_phdr; 0 where the loader may not be asked. A callback may call it again. */
int loader_each(loader_callback *callback, void *data);

/* dl_iterate_phdr in any case: for a function that the program itself has called. */
int loader_each_needed(loader_callback *callback, void *data);

/* For callbacks that look for the one module that contains the address: where the loader may not be
 * asked, they are called with that one alone, if it can be told without a lock. */
int loader_each_at(const void *address, loader_callback *callback, void *data);

/* The module that contains an address, without a lock: its bias, name and program headers. False:
 * there is none, or only loader_each() can tell. Signal-safe. */
bool loader_find(uintptr_t address, struct dl_phdr_info *out);

/* Is there a loader that tells of one module without a lock? */
bool loader_finds(void);

/* By that: is there a module at that address, and have all its relocations been done? */
bool loader_knows(uintptr_t address);

bool loader_may_ask(void);

/* Before the program loads or unloads something, and after. Not in the middle of a capture. */
enum loader_change {
	LOADER_AS_BEFORE, /* only where it may not be asked: nothing has come or gone */
	LOADER_UNKNOWN, /* nor may it be asked */
	LOADER_CHANGED, /* or it may have: it may be asked */
};
void loader_changing(void);
enum loader_change loader_changed(void);

/* Around libc's fork, in parent and child. Waits for other threads that are at the list, but not
 * for long: a signal handler may have interrupted one, and be the one that forks. */
void loader_before_fork(void);
void loader_after_fork(bool in_child);

/* In the child of any fork, once at the least. */
void loader_forked(void);

#endif
