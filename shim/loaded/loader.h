/*
 * loader.h - the loader's list of modules. dl_iterate_phdr takes a lock that fork does not reset:
 * if another thread holds it at a fork, every walk of the list and every dlopen in the child hangs.
 * So no thread walks the list for us while another one is in libc's fork; and in the child of any
 * fork nobody walks it for us until the list has visibly changed, which proves that the lock was
 * free. That is seen without the lock.
 */
#ifndef SHIM_LOADER_H
#define SHIM_LOADER_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int loader_callback(struct dl_phdr_info *, size_t, void *);

/* At start: the C library's _dl_find_object(), which takes no lock; NULL: it has none. */
void loader_init(void *find_object);

/* Call dl_iterate_phdr(); returns 0 without a call where the list may not be walked. A callback may
 * call it again. */
int loader_each(loader_callback *callback, void *data);

/* Call dl_iterate_phdr() in any case: for a function that the program itself has called. */
int loader_each_needed(loader_callback *callback, void *data);

/* For callbacks that look for the module that contains `address`. Where the list may not be walked,
 * the callback gets that module only, if it can be found without a lock. */
int loader_each_at(const void *address, loader_callback *callback, void *data);

/* The range of a module's segments. */
static inline void loader_bounds(const struct dl_phdr_info *info, uintptr_t *low, uintptr_t *high)
{
	*low = UINTPTR_MAX;
	*high = 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && start < *low)
			*low = start;
		if (p->p_type == PT_LOAD && start + p->p_memsz > *high)
			*high = start + p->p_memsz;
	}
}

/* A module's dynamic section; NULL: it has none. */
static inline const ElfW(Dyn) * loader_dynamic(const struct dl_phdr_info *info)
{
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			return (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	return NULL;
}

/* The address in a dynamic entry: glibc writes run-time addresses into the mapped section, other C
 * libraries leave the file's. */
static inline const void *loader_pointer(uintptr_t bias, ElfW(Addr) value)
{
	return (const void *)(value < bias ? value + bias : value);
}

/* Find the module that contains an address, without a lock: its bias, name and program headers.
 * False: there is none, or only loader_each() can tell. Signal-safe. */
bool loader_find(uintptr_t address, struct dl_phdr_info *out);

/* Can loader_find() work at all, with this C library? */
bool loader_finds(void);

/* Is there a module at `address`, with all relocations done, as far as loader_find() can tell? */
bool loader_knows(uintptr_t address);

bool loader_may_ask(void);

/* Call loader_changing() before the program loads or unloads something and loader_changed() after
 * it. Not within a capture. */
enum loader_change {
	LOADER_AS_BEFORE, /* only in a forked child: nothing was loaded or unloaded */
	LOADER_UNKNOWN, /* only in a forked child: the list may not be walked */
	LOADER_CHANGED, /* the list may have changed and may be walked */
};
void loader_changing(void);
enum loader_change loader_changed(void);

/* Call these around libc's fork, in parent and child. The first waits for other threads that walk
 * the list, but not for long: a signal handler may have interrupted such a walk, and be the one
 * that forks. */
void loader_before_fork(void);
void loader_after_fork(bool in_child);

/* In the child of any fork, at least once. */
void loader_forked(void);

#endif
