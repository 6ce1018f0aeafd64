/*
 * got.h - points the slots through which modules call an imported function to a wrapper. Only slots
 * that lead (or, not bound yet, will lead) to the very function that the wrapper forwards to.
 */
#ifndef SHIM_GOT_H
#define SHIM_GOT_H

#include <stdbool.h>
#include <stddef.h>

struct got_hook {
	const char *name;
	void *wrapper;
	void **real; /* NULL in it: nobody defines it, slots are left alone */
	bool owners_only; /* for the caller */
};

/* All modules but ours. Takes the loader's list lock. */
void got_point(const struct got_hook *hooks, size_t count);

#endif
