/*
 * sys.h - raw system calls and memory of our own. Nothing here goes through libc's wrappers, so
 * our hooks never see it, errno is never touched, and nothing comes from the host's heap.
 */
#ifndef SHIM_SYS_H
#define SHIM_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kernel's answer: negative errno on failure. */
long sys_call(long number, long a, long b, long c, long d, long e, long f);

/* Zeroed anonymous memory, page-rounded; NULL when refused. Counted in sys_own_bytes(). */
void *sys_pages(size_t bytes);
void sys_pages_free(void *p, size_t bytes);
size_t sys_own_bytes(void);

/* One line on stderr, "whyoom: " before and a newline after; for what is said at most once. */
void sys_say(const char *text);

#endif
