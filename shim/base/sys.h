/*
 * sys.h - raw system calls and memory of our own. Nothing here goes through libc's wrappers, so
 * our hooks never see it, errno is never touched, and nothing comes from the host's heap.
 */
#ifndef SHIM_SYS_H
#define SHIM_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The kernel's answer: negative errno on failure; -EPERM, and the kernel was not asked, where
 * sys_allows is set and says no. */
extern bool (*sys_allows)(long number, const long arguments[6])
    __attribute__((visibility("hidden")));
long sys_call(long number, long a, long b, long c, long d, long e, long f);
/* Also of calls that answer with an address, which may look negative. */
static inline bool sys_failed(long answer)
{
	return answer < 0 && answer > -4096;
}

/* Fresh anonymous memory as mmap answers, page-rounded by the caller, counted by nobody yet. */
long sys_map(size_t bytes);
/* Zeroed anonymous memory, page-rounded; NULL when refused. Counted in sys_own_bytes(), and so are
 * the few small pieces that sys_pages_free() keeps for whoever asks next. */
void *sys_pages(size_t bytes);
/* The same, for what is read in no order: where it is large, on huge pages if the kernel has them.
 */
void *sys_pages_scattered(size_t bytes);
/* Whoever holds the address forgets it first, here and wherever memory is unmapped: a fork in
 * between leaves the child one that it gives back again, and by then that may be the stack it runs
 * on. */
void sys_pages_free(void *p, size_t bytes);
/* So many fresh pages in the place of those there, of which `keep` bytes go over: those are
 * forgotten, then given back. False: refused, and what was there still is. */
static inline bool sys_pages_replace(void **place, size_t had, size_t keep, size_t bytes)
{
	void *fresh = sys_pages(bytes), *old = *place;

	if (!fresh)
		return false;
	if (keep)
		memcpy(fresh, old, keep);
	__atomic_store_n(place, fresh, __ATOMIC_RELEASE);
	sys_pages_free(old, had);
	return true;
}
size_t sys_own_bytes(void);
/* So many bytes more are such memory, by another way. */
void sys_pages_more(size_t bytes);
/* Where pages come from when the kernel refuses them, and whether they were from there. Taken ones
 * are zeroed, and were counted before. */
void sys_pages_reserve(void *(*take)(size_t bytes), bool (*give)(void *p, size_t bytes));

/* One line on stderr, "whyoom: " before and a newline after; for what is said at most once. Says
 * nothing when descriptor 2 is no longer the file it was at sys_say_init(). */
void sys_say_init(bool quiet);
void sys_say(const char *text);

/* The file's first bytes, at most `size - 1`, terminated. Their number, or negative errno. */
long sys_read_file(const char *path, char *buffer, size_t size);

/* The path of what is open there, terminated, cut to `size`. Its length, or negative errno; *out is
 * then "". */
long sys_fd_path(int fd, char *out, size_t size);

/* The descriptor, close-on-exec, or negative errno. */
int sys_open(const char *path, int flags, unsigned mode);
void sys_close(int fd);

/* All signals off for this thread, and back. For the rare, long parts of our work only: there a
 * handler of the host could meet our tables half changed. */
uint64_t sys_block_signals(void);
void sys_restore_signals(uint64_t mask);

/* For loops that wait for another thread's few instructions. */
void sys_yield(void);

int sys_getpid(void);
int sys_gettid(void);
uint64_t sys_clock_ns(int clock);

#endif
