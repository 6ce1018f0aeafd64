/* plugin.c - a library that is loaded and unloaded again: built as several, with different code
 * before the function under test, so that their addresses differ. INNER: loads a neighbour by
 * name. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

void *plugin_work(size_t n);
void plugin_drop(void *p);

#ifdef PADDED
int plugin_padding(int x);
int plugin_padding(int x)
{
	volatile int y = x;
	for (int i = 0; i < 100; i++)
		y = y * 3 + i;
	return y;
}
#endif

static __thread char *mine; /* a TLS block of the module's own */

__attribute__((noinline)) static void *deeper(size_t n)
{
	mine = malloc(n);
#ifdef PADDED
	__asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop");
#endif
	return mine;
}

void *plugin_work(size_t n)
{
#ifdef INNER
	/* by name: found next to this library through its own RUNPATH */
	void *h = dlopen("libplugin_inner.so", RTLD_NOW | RTLD_LOCAL);
	if (!h) {
		fprintf(stderr, "%s\n", dlerror());
		return NULL;
	}
	void *(*work)(size_t) = (void *(*)(size_t))dlsym(h, "plugin_work");
	free(work(n + 10));
#endif
	void *p = deeper(n);
	__asm__ volatile("" ::"r"(p) : "memory");
	return p;
}

void plugin_drop(void *p)
{
	free(p);
}
