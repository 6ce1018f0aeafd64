/*
 * hook_syscall.h - syscall() with the numbers in ALL_TO_HOOK (hook_jump.c).
 */
#ifndef SHIM_HOOK_SYSCALL_H
#define SHIM_HOOK_SYSCALL_H

#include <stdbool.h>
#include <sys/syscall.h>

/* missing in older headers */
#ifndef SYS_landlock_restrict_self
#define SYS_landlock_restrict_self 446
#endif

struct raw_syscall {
	long number, argument[6];
};

/* Handles the call. The arguments are in the caller's registers, hence the list. */
long hook_syscall(long number, long a, long b, long c, long d, long e, long f);

/* Handles SYS_execve and SYS_execveat. Returns as syscall() does. */
long hook_exec_syscall(const struct raw_syscall *call);

/* Makes the call if it is one that gives up rights or installs a seccomp filter; *result as of
 * syscall(). False: it is not. */
bool hook_rights_syscall(const struct raw_syscall *call, long *result);

#endif
