/* slots_plugin.c - a library that asks another allocator (slots_stand.c) for memory. With OUTER,
 * its constructor loads the library that a variable names, which asks for 7031 bytes. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

void *mallocx(size_t size, int flags);
void dallocx(void *block, int flags);

void take(size_t size);
void take(size_t size)
{
	dallocx(mallocx(size, 0), 0);
}

#ifdef OUTER
static __attribute__((constructor)) void load_another(void)
{
	void *handle = dlopen(getenv("SLOTS_INNER"), RTLD_LAZY);
	void (*inner)(size_t) = handle ? (void (*)(size_t))dlsym(handle, "take") : NULL;

	if (!inner)
		abort();
	inner(7031);
}
#endif
