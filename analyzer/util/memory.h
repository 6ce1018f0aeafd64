/*
 * memory.h - limits the private memory of this process (--max-memory). The kernel enforces the
 * limit, so it holds for libraries too. An allocation beyond it fails, and err_set() of -ENOMEM
 * adds how much would be enough. One thread.
 */
#ifndef ANALYZER_UTIL_MEMORY_H
#define ANALYZER_UTIL_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Make malloc() map large arrays, so that free() returns them and realloc() does not copy; by
 * default glibc soon serves up to 32 MiB from its heap. Call once, at the start. */
void memory_start(void);
/* Set the limit. `bytes` 0: the machine's memory. `named`: the user gave --max-memory, and
 * messages name it. 0 or negative errno. */
int memory_limit(uint64_t bytes, int named);
/* Remove the limit for a program to be started. Call between fork and exec. */
void memory_lift(void);
/* Format what to append to "out of memory": the limit, and how much would be enough; "" without a
 * limit. Returns `buffer`. */
const char *memory_words(char *buffer, size_t room);
/* Print that there is no memory for `what`, and exit: for libraries that cannot handle it. */
void memory_give_up(const char *what) __attribute__((noreturn));

#endif
