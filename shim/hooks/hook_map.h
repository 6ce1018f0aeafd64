/*
 * hook_map.h - system calls that change memory, for hook_jump.c.
 */
#ifndef SHIM_HOOK_MAP_H
#define SHIM_HOOK_MAP_H

/* A call of syscall(). */
struct raw_syscall {
	long number, argument[6];
};

/* Handles syscall() for the numbers in ALL_TO_HOOK (hook_jump.c). The arguments are in the caller's
 * registers, hence the list. */
long hook_syscall(long number, long a, long b, long c, long d, long e, long f);

#endif
