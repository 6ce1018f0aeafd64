/*
 * got.h - points the slots through which modules call an imported function to a wrapper. Only slots
 * that lead (or, not bound yet, will lead) to the very function that the wrapper forwards to.
 */
#ifndef SHIM_GOT_H
#define SHIM_GOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct got_hook {
	const char *name;
	void *wrapper;
	void **real; /* NULL in it: nobody defines it, slots are left alone */
	bool owners_only; /* for the caller */
};

/* All modules but ours. Takes the loader's list lock. False: some are still being loaded, and were
 * left as they are: to be called again. */
bool got_point(const struct got_hook *hooks, size_t count);

/* The same where the wrapper depends on what a slot leads to. */
struct got_slot {
	const char *name;
	uintptr_t now; /* what it leads to */
	bool unbound; /* still to the stub that will bind it; `now` says nothing */
	uintptr_t low, high; /* the module it is in */
};
struct got_walk {
	/* By its file's name and its range: false passes over a module. NULL: all are taken. */
	bool (*module)(const char *path, uintptr_t bias, uintptr_t low, uintptr_t high);
	void (*not_yet)(void); /* that module is still being loaded; may be NULL */
	bool (*wanted)(const char *name); /* asked for every relocation */
	void *(*wrapper)(const struct got_slot *slot); /* NULL: leave it */
};
/* Also pointers in data, where the linker put a function's address into a table. False: as above. */
bool got_each(const struct got_walk *walk);
/* The function that a slot leads to, or will be bound to; NULL: not known. */
void *got_function(const struct got_slot *slot);

#endif
