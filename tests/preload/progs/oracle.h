/*
 * oracle.h - the calls that a test program really made, for comparison with its trace. Each helper
 * makes one call and logs it in a shared file that survives the program, in the order of the
 * thread's calls. Between oracle_begin() and oracle_end() every allocation of a thread must go
 * through these helpers: then that thread's trace must hold exactly the log.
 *
 * The log is one array; an atomic add claims a slot. Nothing in here allocates.
 */
#ifndef ORACLE_H
#define ORACLE_H

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum oracle_kind {
	O_ALLOC = 1,
	O_FREE,
	O_UNFREE,
	O_MAP,
	O_UNMAP,
	O_ADVISE,
	O_BRK,
	O_FAILED,
	O_BEGIN,
	O_END
};

struct oracle_event {
	uint32_t kind, tid;
	uint64_t a, b, c, d;
};

struct oracle_log {
	uint64_t used;
	struct oracle_event e[];
};

#define ORACLE_BYTES ((size_t)64 << 20)
#define ORACLE_MARK                                                                                \
	12345677u /* sizes of the blocks that bracket what is compared: this, and + 1              \
		   */

static struct oracle_log *oracle;
static __thread uint32_t oracle_tid;

static inline void o_check(int ok, const char *what, int line)
{
	if (!ok) {
		fprintf(stderr, "line %d: not so: %s (errno %d)\n", line, what, errno);
		_exit(97);
	}
}
#define CHECK(c) o_check(!!(c), #c, __LINE__)

static inline uint32_t oracle_gettid(void)
{
	if (!oracle_tid)
		oracle_tid = (uint32_t)syscall(SYS_gettid);
	return oracle_tid;
}

static inline void oracle_open(void)
{
	const char *path = getenv("ORACLE");
	int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;

	CHECK(fd >= 0 && ftruncate(fd, (off_t)ORACLE_BYTES) == 0);
	oracle = mmap(NULL, ORACLE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(oracle != MAP_FAILED);
	close(fd);
}

static inline void oracle_put(uint32_t kind, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	uint64_t i = __atomic_fetch_add(&oracle->used, 1, __ATOMIC_RELAXED);

	if ((i + 2) * sizeof(struct oracle_event) > ORACLE_BYTES)
		_exit(98);
	oracle->e[i] = (struct oracle_event){kind, oracle_gettid(), a, b, c, d};
}

static inline uint64_t o_int(const volatile void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static inline void oracle_begin(void)
{
	int e = errno;
	void *volatile p = malloc(ORACLE_MARK);

	oracle_put(O_BEGIN, 0, 0, 0, 0);
	free(p);
	errno = e;
}

static inline void oracle_end(void)
{
	void *volatile p = malloc(ORACLE_MARK + 1);

	free(p);
	oracle_put(O_END, 0, 0, 0, 0);
}

/* As in docs/trace-format.md. */
#define API_MALLOC 0
#define API_CALLOC 1
#define API_REALLOC 2
#define API_ALIGNED 3
#define API_MMAP 8
#define API_MREMAP 9
#define API_BRK 10
#define API_SHMAT 11
#define API_MUNMAP 12
#define API_SHMDT 13

/* After a call that acquired, or failed with errno. */
static inline void *o_got(void *p, uint64_t size, uint64_t api, uint64_t align)
{
	if (p)
		oracle_put(O_ALLOC, o_int(p), size, api, 0);
	else
		oracle_put(O_FAILED, size, api, (uint64_t)errno, align);
	return p;
}

static inline void *o_malloc(size_t n)
{
	return o_got(malloc(n), n, API_MALLOC, 0);
}

static inline void *o_calloc(size_t n, size_t m)
{
	return o_got(calloc(n, m), n * m, API_CALLOC, 0);
}

static inline void o_free(void *p)
{
	if (p)
		oracle_put(O_FREE, o_int(p), 0, 0, 0);
	free(p);
}

/* After a realloc of any kind; n 0 released, a NULL otherwise kept the old block. */
static inline void *o_realloced(void *old, void *p, size_t n)
{
	if (!p && n && old)
		oracle_put(O_UNFREE, o_int(old), 0, 0, 0);
	if (p || n)
		o_got(p, n, API_REALLOC, 0);
	return p;
}

static inline void *o_realloc(void *old, size_t n)
{
	if (old)
		oracle_put(O_FREE, o_int(old), 1, 0, 0);
	return o_realloced(old, realloc(old, n), n);
}

static inline void *o_reallocarray(void *old, size_t n, size_t m)
{
	size_t total;

	if (old)
		oracle_put(O_FREE, o_int(old), 1, 0, 0);
	void *p = reallocarray(old, n, m);
	if (__builtin_mul_overflow(n, m, &total))
		total = SIZE_MAX;
	return o_realloced(old, p, total);
}

static inline void *o_aligned_alloc(size_t align, size_t n)
{
	return o_got(aligned_alloc(align, n), n, API_ALIGNED, align);
}

static inline void *o_memalign(size_t align, size_t n)
{
	return o_got(memalign(align, n), n, API_ALIGNED, align);
}

static inline int o_posix_memalign(void **out, size_t align, size_t n)
{
	int r = posix_memalign(out, align, n);

	if (r == 0)
		oracle_put(O_ALLOC, o_int(*out), n, API_ALIGNED, 0);
	else if (r == ENOMEM)
		oracle_put(O_FAILED, n, API_ALIGNED, ENOMEM, align);
	return r;
}

/* Mappings. d: the flags that the record must carry. */

static inline void *o_mmap(void *at, size_t n, int prot, int flags, int fd, off_t off)
{
	void *p = mmap(at, n, prot, flags, fd, off);

	if (p != MAP_FAILED)
		oracle_put(O_MAP, o_int(p), n, API_MMAP,
		    (flags & MAP_FIXED ? 8u : 0) | (flags & MAP_SHARED ? 16u : 0));
	else if (errno == ENOMEM)
		oracle_put(O_FAILED, n, API_MMAP, ENOMEM, 0);
	return p;
}

static inline int o_munmap(void *p, size_t n)
{
	oracle_put(O_UNMAP, o_int(p), n, API_MUNMAP, 0);
	return munmap(p, n);
}

static inline void *o_mremap(void *old, size_t from, size_t to, int flags, void *at)
{
	oracle_put(O_UNMAP, o_int(old), from, API_MREMAP, 4);
	void *p = mremap(old, from, to, flags, at);
	CHECK(p != MAP_FAILED);
	oracle_put(O_MAP, o_int(p), to, API_MREMAP, flags & MREMAP_FIXED ? 12 : 4);
	return p;
}

#endif
