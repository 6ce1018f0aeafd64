/* fetch.c - a library that looks a function up, built under the names of tools that do that. Names
 * that are not there stay so for its weak references, too. */
#include <dlfcn.h>

void *fetch(void *handle, const char *name);
void *fetch(void *handle, const char *name)
{
	void *p = dlsym(handle, name);

	__asm__ volatile("" : "+r"(p)); /* no jump: the return address is to be ours */
	return p;
}

extern int cuMemAlloc_v2(void) __attribute__((weak)), cudaMalloc(void) __attribute__((weak));

int weak_names(void);
int weak_names(void)
{
	return (cuMemAlloc_v2 != 0) + (cudaMalloc != 0);
}

/* one of its own under such a name */
int cuMemAllocManaged(unsigned long *out, unsigned long size, unsigned flags);
int cuMemAllocManaged(unsigned long *out, unsigned long size, unsigned flags)
{
	return 4242;
}
