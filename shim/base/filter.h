/*
 * filter.h - the seccomp filters that the host has installed, as far as we saw them: a system call
 * of ours that one of them does not plainly allow may be the host's death, and is not made. They
 * are run here as the kernel runs them, of all threads for each one.
 */
#ifndef SHIM_FILTER_H
#define SHIM_FILTER_H

#include <stdbool.h>
#include <stdint.h>

struct sock_filter;

/* What that program answers for one call, an enum of SECCOMP_RET_*; one that is not valid kills. */
uint32_t filter_run(
    const struct sock_filter *program, unsigned length, uint32_t number, const long arguments[6]);

/* The host is about to install the program at `fprog` (a struct sock_fprog, not to be trusted), or,
 * where it is NULL, the strict mode. From here on sys_call() asks it, too. A number for
 * filter_remove(), or -1: it cannot be read or kept, and no call is made from here on. One thread
 * at a time. */
int filter_add(const void *fprog);

/* It was not installed; and it is now. */
void filter_remove(int number);
void filter_restore(int number);

/* Is there one, by which other libraries' calls may be refused? */
bool filter_any(void);

/* Do all filters allow that call? */
bool filter_allows(long number, const long arguments[6]);

#endif
