/*
 * filter.h - the seccomp filters that the host has installed, as far as the shim saw them. A system
 * call of the shim that a filter does not plainly allow may kill the host, so it is not made.
 * Filters run here as in the kernel; each thread is held to the filters of all threads.
 */
#ifndef SHIM_FILTER_H
#define SHIM_FILTER_H

#include <stdbool.h>
#include <stdint.h>

struct sock_filter;

/* Return the answer of a filter program to one call, a SECCOMP_RET_* value. An invalid program
 * kills. */
uint32_t filter_run(
    const struct sock_filter *program, unsigned length, uint32_t number, const long arguments[6]);

/* Add the program that the host is about to install, a struct sock_fprog that is not trusted, or
 * for NULL the strict mode. From now on sys_call() asks it, too. Returns a number for
 * filter_remove(); -1: it cannot be read or kept, and no system call is allowed from now on. One
 * thread at a time. */
int filter_add(const void *fprog);

/* Drop a filter that was not installed after all, or put it back. */
void filter_remove(int number);
void filter_restore(int number);

/* Is there a filter, which may also refuse the calls of other libraries? */
bool filter_any(void);

/* Do all filters allow the call? `arguments`: all six. */
bool filter_allows(long number, const long arguments[6]);

#endif
