/*
 * hook_map.h - between hook_map.c and hook_jump.c.
 */
#ifndef SHIM_HOOK_MAP_H
#define SHIM_HOOK_MAP_H

#include <stdbool.h>

#include "thread/thread.h"

/* syscall() with a number that concerns us. */
long hook_syscall(long number, long a, long b, long c, long d, long e, long f);

/* Is this a vfork child, or a fork that has not noticed yet, on the parent's memory? */
static inline bool hook_map_wrong_process(const struct thread *t)
{
	return t->vfork || !t->serial;
}

#endif
