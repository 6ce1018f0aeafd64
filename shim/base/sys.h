/*
 * sys.h - raw system calls and the shim's own memory. Nothing here goes through libc's wrappers:
 * our hooks never see it, errno stays, and nothing comes from the host's heap. Any thread,
 * signal-safe.
 */
#ifndef SHIM_SYS_H
#define SHIM_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Make a system call. Returns the kernel's answer, negative errno on failure. Where sys_allows is
 * set and refuses, returns -EPERM without asking the kernel. */
extern bool (*sys_allows)(long number, const long arguments[6])
    __attribute__((visibility("hidden")));
long sys_call(long number, long a, long b, long c, long d, long e, long f);
/* Did the call fail? Also for calls that return an address, which may look negative. */
static inline bool sys_failed(long answer)
{
	return answer < 0 && answer > -4096;
}

/* Map fresh anonymous memory; returns mmap's answer. The caller rounds to pages and counts the
 * memory. */
long sys_map(size_t bytes);
/* Return zeroed anonymous memory, rounded to pages; NULL: refused. Counts in sys_own_bytes(), like
 * the few small pieces that sys_pages_free() keeps for the next request. */
void *sys_pages(size_t bytes);
/* The same for memory that is read in random order: large pieces use huge pages where possible. */
void *sys_pages_scattered(size_t bytes);
/* Free pages. The owner first forgets the address, here and wherever memory is unmapped: a fork in
 * between leaves a child that frees it again, when it may be the stack that the child runs on. */
void sys_pages_free(void *p, size_t bytes);
/* Replace the pages at *place by `bytes` fresh ones and copy `keep` bytes. The old ones are
 * forgotten, then freed. False: refused; nothing has changed. */
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
/* Count memory that was mapped or resized by other means; a negative number wraps. */
void sys_pages_more(size_t bytes);
/* Set where pages come from when the kernel refuses them, and what takes such pages back. take()
 * returns zeroed pages that are already counted. */
void sys_pages_reserve(void *(*take)(size_t bytes), bool (*give)(void *p, size_t bytes));

/* Print one line on stderr, "whyoom: " before it. For messages that appear at most once. Silent
 * once descriptor 2 is not the file it was at sys_say_init(). */
void sys_say_init(bool quiet);
void sys_say(const char *text);

/* Read a file's first bytes, at most `size - 1`, and terminate them. Returns their number or
 * negative errno. */
long sys_read_file(const char *path, char *buffer, size_t size);

/* Write the name under which /proc has an open file. */
#define SYS_FD_LINK_BYTES 32
void sys_fd_link(int fd, char out[SYS_FD_LINK_BYTES]);

/* Write the path of an open file to `out`, cut to `size` and terminated. Returns its length or
 * negative errno; *out is then "". */
long sys_fd_path(int fd, char *out, size_t size);

/* Open a file close-on-exec. Returns a descriptor or negative errno. */
int sys_open(const char *path, int flags, unsigned mode);
void sys_close(int fd);

/* An entry of a directory, as getdents64 returns it. */
struct sys_entry {
	uint64_t inode;
	int64_t next;
	uint16_t bytes; /* of this entry */
	uint8_t type;
	char name[];
};

/* Block all signals of this thread and restore them. Only for the rare, long parts of the shim's
 * work, in which a handler of the host could see tables half changed. */
uint64_t sys_block_signals(void);
void sys_restore_signals(uint64_t mask);

/* Return the soft limit of a resource, RLIMIT_*; RLIM64_INFINITY: none. */
uint64_t sys_limit(int resource);

/* For loops that wait for a few instructions of another thread. */
void sys_yield(void);

/* False: another thread, or the one that this handler has interrupted, holds it. */
static inline bool sys_try_lock(int *lock)
{
	return !__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE);
}

/* A lock for a few hundred instructions. The caller blocks signals while it holds the lock. */
static inline void sys_lock(int *lock)
{
	while (!sys_try_lock(lock))
		sys_yield();
}

static inline void sys_unlock(int *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

int sys_getpid(void);
int sys_gettid(void);
uint64_t sys_clock_ns(int clock);

#endif
