/*
 * memory.h - the most private memory that this process may have (--max-memory). The kernel keeps to
 * it, so that it holds for libraries, too; allocations fail, and what fails is said with what would
 * do (err_set() of -ENOMEM). One thread.
 */
#ifndef ANALYZER_UTIL_MEMORY_H
#define ANALYZER_UTIL_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Large arrays are given back when they are freed, and grow without being copied: glibc's malloc()
 * would soon keep all below 32 MiB in its heap, with the holes that they leave. Once, at the
 * start. */
void memory_start(void);
/* From now on. `bytes` 0: as much as there is. `named`: by the user, who hears of it by that name.
 * 0 or negative errno. */
int memory_limit(uint64_t bytes, int named);
/* For a program that is started: the limit is not its. Between fork and exec. */
void memory_lift(void);
/* Why memory ran out, and how much would do, to be put behind "out of memory"; "" without a limit.
 */
const char *memory_words(char *buffer, size_t room);
/* Says so of `what`, and ends the process: for libraries that cannot go on without memory. */
void memory_give_up(const char *what) __attribute__((noreturn));

#endif
