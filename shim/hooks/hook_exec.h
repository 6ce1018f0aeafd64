/*
 * hook_exec.h - exec called through syscall().
 */
#ifndef SHIM_HOOK_EXEC_H
#define SHIM_HOOK_EXEC_H

struct raw_syscall; /* hook_map.h */

/* Handles SYS_execve and SYS_execveat. Returns as syscall() does. */
long hook_exec_syscall(const struct raw_syscall *call);

#endif
