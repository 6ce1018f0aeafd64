/*
 * hook_map.h - system calls that change memory, for hook_jump.c.
 */
#ifndef SHIM_HOOK_MAP_H
#define SHIM_HOOK_MAP_H

#include <stdbool.h>

#include "thread/thread.h"

/* A call of syscall(). */
struct raw_syscall {
	long number, argument[6];
};

/* Handles syscall() for the numbers in ALL_TO_HOOK (hook_jump.c). The arguments are in the caller's
 * registers, hence the list. */
long hook_syscall(long number, long a, long b, long c, long d, long e, long f);

/* True: a vfork child on the parent's memory, or a fork's child that has not noticed the fork. */
static inline bool hook_map_is_foreign_process(const struct thread *t)
{
	return t->vfork || !t->serial;
}

#endif
