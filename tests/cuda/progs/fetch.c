/* fetch.c - a library that looks a function up, built under the names of tools that do so. Its weak
 * references to missing names stay unresolved. */
#include <dlfcn.h>

void *fetch(void *handle, const char *name);
void *fetch(void *handle, const char *name)
{
	void *p = dlsym(handle, name);

	__asm__ volatile("" : "+r"(p)); /* no tail call: the return address must be here */
	return p;
}

extern int cuMemAlloc_v2(void) __attribute__((weak)), cudaMalloc(void) __attribute__((weak));

int weak_names(void);
int weak_names(void)
{
	return (cuMemAlloc_v2 != 0) + (cudaMalloc != 0);
}

/* its own function under such a name */
int cuMemAllocManaged(unsigned long *out, unsigned long size, unsigned flags);
int cuMemAllocManaged(unsigned long *out, unsigned long size, unsigned flags)
{
	return 4242;
}
