/* tsan_sys.c - shim/base/sys.c for the thread sanitizer: gets memory through libc, where the
 * sanitizer sees it. With raw system calls it would report a reused address as a race. */
#define sys_pages raw_pages
#define sys_pages_free raw_pages_free
#include "base/sys.c"
#undef sys_pages
#undef sys_pages_free

void *sys_pages(size_t bytes);
void sys_pages_free(void *p, size_t bytes);

void *sys_pages(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void sys_pages_free(void *p, size_t bytes)
{
	if (p)
		munmap(p, bytes);
}
