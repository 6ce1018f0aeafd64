/*
 * hook_rights.h - syscall() for calls that give up rights or install a seccomp filter.
 */
#ifndef SHIM_HOOK_RIGHTS_H
#define SHIM_HOOK_RIGHTS_H

#include <stdbool.h>
#include <sys/syscall.h>

/* missing in older headers */
#ifndef SYS_landlock_restrict_self
#define SYS_landlock_restrict_self 446
#endif

struct raw_syscall; /* hook_map.h */

/* Makes the call if it is one that gives up rights; *result as of syscall(). False: it is not. */
bool hook_rights_syscall(const struct raw_syscall *call, long *result);

#endif
