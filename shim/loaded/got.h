/*
 * got.h - points the slots through which modules call an imported function to a wrapper. Only slots
 * that lead (or, not bound yet, will lead) to the very function that the wrapper forwards to.
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
	void **real; /* NULL in it: nobody defines it, slots are left alone */
	bool owners_only; /* for the caller */
	/* `real` came with a later library: a slot that is not bound yet may be meant for another
	 * function of that name. */
	bool local;
};

#define GOT_HOOKS_MAX 96 /* in one call */

/* In one module, which is not ours. Under the loader's list lock. False: it is still being loaded,
 * and was left as it is: to be called again. */
bool got_point(const struct dl_phdr_info *info, const struct got_hook *hooks, size_t count);

/* The same where the wrapper depends on what a slot leads to. */
struct got_slot {
	const char *name;
	uintptr_t now; /* what it leads to */
	bool unbound; /* still to the stub that will bind it; `now` says nothing */
	uintptr_t low, high; /* the module it is in */
};
struct got_walk {
	bool (*wanted)(const char *name); /* asked for every relocation */
	/* NULL: leave it. *later: it is not known yet what it leads to. */
	void *(*wrapper)(const struct got_slot *slot, bool *later);
};
/* Also pointers in data, where the linker put a function's address into a table. False: as above,
 * or something is not known yet. */
bool got_walk(const struct dl_phdr_info *info, const struct got_walk *walk);
/* The function that a slot leads to, or will be bound to; NULL: not known. */
void *got_function(const struct got_slot *slot);

#endif
