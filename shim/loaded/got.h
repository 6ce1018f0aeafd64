/*
 * got.h - makes slots through which modules call an imported function lead to a wrapper. Changes
 * only slots that lead (or, still unbound, will lead) to the very function that the wrapper
 * forwards to.
 */
#ifndef SHIM_GOT_H
#define SHIM_GOT_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct got_hook {
	const char *name;
	void *wrapper;
	void **real; /* if *real is NULL, nothing defines the function and slots stay */
	bool owners_only; /* for the caller */
	/* `real` came with a later library: an unbound slot may be meant for another function of
	 * that name. */
	bool local;
	/* Also the pointers in data where the linker put the function's address into a table. */
	bool pointers;
};

#define GOT_HOOKS_MAX 96 /* in one call */

/* Point the slots of one module that is not ours. Under the loader's list lock. False: the module
 * is still being loaded and was left alone; call again. */
bool got_point(const struct dl_phdr_info *info, const struct got_hook *hooks, size_t count);

/* The same where the wrapper depends on the function that a slot leads to. */
struct got_slot {
	const char *name;
	uintptr_t now; /* the function that it leads to */
	bool unbound; /* leads to the stub that will bind it; ignore `now` */
	uintptr_t low, high; /* the module that contains the slot */
};
struct got_walk {
	bool (*wanted)(const char *name); /* called for every relocation */
	/* Return the wrapper; NULL: leave the slot. *later: its function is not known yet. */
	void *(*wrapper)(const struct got_slot *slot, bool *later);
};
/* Walk the slots of one module, and the pointers in its data where the linker put a function's
 * address into a table. False: as above, or some function is not known yet. */
bool got_walk(const struct dl_phdr_info *info, const struct got_walk *walk);
/* Return the function that a slot leads to or will be bound to; NULL: not known. */
void *got_function(const struct got_slot *slot);

/* From now on remember what the slots held that are changed, for got_restore(). A slot that cannot
 * be remembered for want of memory stays as it is. */
void got_keep_changes(void);

/* Put back the slots, of modules that are still loaded, that lead to us, and forget the changes. */
void got_restore(void);

#endif
