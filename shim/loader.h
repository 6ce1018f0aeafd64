/*
 * loader.h - the loader's list of modules. dl_iterate_phdr takes a lock of the loader's that fork
 * leaves as it is: whoever forks while another thread has it gets a child in which nobody ever
 * comes to that list again, nor to a dlopen. So no thread is there for us while one forks, and in
 * the child nobody goes there for us unless the program itself has loaded or unloaded something.
 */
#ifndef SHIM_LOADER_H
#define SHIM_LOADER_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>

/* dl_iterate_phdr. */
int loader_each(int (*callback)(struct dl_phdr_info *, size_t, void *), void *data);

/* The same, where nothing is known to have been loaded: 0 in the child of a fork. */
int loader_each_unasked(int (*callback)(struct dl_phdr_info *, size_t, void *), void *data);

/* Around libc's fork, in parent and child. Waits for other threads that are at the list, but not
 * for long: a signal handler may have interrupted one, and be the one that forks. */
void loader_before_fork(void);
void loader_after_fork(bool in_child);

/* In the child of any fork, once at the least. */
void loader_forked(void);

#endif
