/* lockfree_malloc.c - a malloc for test programs that signal handlers may enter: blocks are
 * never used again. As a linked library it owns malloc and the shim passes calls to it; linked
 * into a program it owns malloc beyond the reach of any preload. */
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LOCKFREE_ARENA ((size_t)64 << 30)

static char *_Atomic lockfree_base;
static _Atomic size_t lockfree_used;
extern _Atomic long lockfree_calls;
_Atomic long lockfree_calls; /* of every function that acquires */

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

/* Not by the public names, which another library may own. */
static void *bump(size_t n)
{
	lockfree_calls++;
	char *base = lockfree_arena();
	size_t need = (n + 16 + 15) & ~(size_t)15;
	size_t at = atomic_fetch_add(&lockfree_used, need);

	if (!base || at + need > LOCKFREE_ARENA) {
		errno = ENOMEM;
		return NULL;
	}
	*(size_t *)(void *)(base + at) = n;
	return base + at + 16;
}

void *malloc(size_t n)
{
	return bump(n);
}

void free(void *p)
{
	(void)p;
}

void *calloc(size_t n, size_t m)
{
	return bump(n * m);
}

void *realloc(void *p, size_t n)
{
	char *q = bump(n);

	if (p && q) {
		size_t old = *(size_t *)(void *)((char *)p - 16);
		memcpy(q, p, old < n ? old : n);
	}
	return q;
}

static void *aligned(size_t align, size_t n)
{
	uintptr_t p = (uintptr_t)bump(n + align);

	return p ? (void *)((p + align - 1) / align * align) : NULL;
}

void *memalign(size_t align, size_t n)
{
	return aligned(align, n);
}

void *aligned_alloc(size_t align, size_t n)
{
	return aligned(align, n);
}

int posix_memalign(void **out, size_t align, size_t n)
{
	*out = aligned(align, n);
	return *out ? 0 : ENOMEM;
}
