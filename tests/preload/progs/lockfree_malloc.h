/*
 * lockfree_malloc.h - a malloc for test programs that may be entered from a signal handler: blocks
 * are never used again. Exported from the program, as a statically linked allocator is.
 */
#ifndef LOCKFREE_MALLOC_H
#define LOCKFREE_MALLOC_H

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define LOCKFREE_ARENA ((size_t)64 << 30)

static char *_Atomic lockfree_base;
static _Atomic size_t lockfree_used;

static char *lockfree_arena(void)
{
	char *base = lockfree_base, *expected = NULL;

	if (base)
		return base;
	base = mmap(NULL, LOCKFREE_ARENA, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return NULL;
	if (!atomic_compare_exchange_strong(&lockfree_base, &expected, base)) {
		munmap(base, LOCKFREE_ARENA);
		base = expected;
	}
	return base;
}

__attribute__((noinline, visibility("default"))) void *malloc(size_t n)
{
	char *base = lockfree_arena();
	size_t need = (n + 16 + 15) & ~(size_t)15;
	size_t at = atomic_fetch_add(&lockfree_used, need);

	if (!base || at + need > LOCKFREE_ARENA) {
		errno = ENOMEM;
		return NULL;
	}
	*(size_t *)(void *)(base + at) = n;
	/* keep the arena's resident part small: a released block is never touched again */
	return base + at + 16;
}

__attribute__((visibility("default"))) void free(void *p)
{
	(void)p;
}

__attribute__((visibility("default"))) void *calloc(size_t n, size_t m)
{
	return malloc(n * m);
}

__attribute__((visibility("default"))) void *realloc(void *p, size_t n)
{
	char *q = malloc(n);

	if (p && q) {
		size_t old = *(size_t *)(void *)((char *)p - 16);
		memcpy(q, p, old < n ? old : n);
	}
	return q;
}

__attribute__((visibility("default"))) void *memalign(size_t align, size_t n)
{
	uintptr_t p = (uintptr_t)malloc(n + align);

	return p ? (void *)((p + align - 1) / align * align) : NULL;
}

__attribute__((visibility("default"))) void *aligned_alloc(size_t align, size_t n)
{
	return memalign(align, n);
}

__attribute__((visibility("default"))) int posix_memalign(void **out, size_t align, size_t n)
{
	*out = memalign(align, n);
	return *out ? 0 : ENOMEM;
}

#endif
