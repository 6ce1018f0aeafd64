/* slots_stand.c - defines two entry points of another allocator; calls are seen only where a
 * module's slots lead to the shim's wrappers. Takes nothing from malloc. Comes and goes with its
 * users. Built twice, since two libraries may have one name. */
#include <stddef.h>

static _Thread_local char place[16384] __attribute__((aligned(16)));

int slots_calls;

void *mallocx(size_t size, int flags);
void *mallocx(size_t size, int flags)
{
	slots_calls++;
	return size <= sizeof(place) ? place : NULL;
}

void dallocx(void *block, int flags);
void dallocx(void *block, int flags)
{
}
