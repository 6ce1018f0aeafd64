/*
 * hook_rights.h - what hook_map.c's hook_syscall() needs of hook_rights.c.
 */
#ifndef SHIM_HOOK_RIGHTS_H
#define SHIM_HOOK_RIGHTS_H

#include <stdbool.h>
#include <sys/syscall.h>

/* Calls of older headers' missing. */
#ifndef SYS_landlock_restrict_self
#define SYS_landlock_restrict_self 446
#endif

/* Makes the call that the host asks syscall() for, if it is one that gives up rights. */
bool hook_rights_syscall(long number, long a, long b, long c, long d, long e, long f, long *result);

#endif
