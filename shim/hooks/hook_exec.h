/*
 * hook_exec.h - exec through syscall().
 */
#ifndef SHIM_HOOK_EXEC_H
#define SHIM_HOOK_EXEC_H

/* SYS_execve or SYS_execveat, with its arguments. */
long hook_exec_syscall(long number, long a, long b, long c, long d, long e);

#endif
