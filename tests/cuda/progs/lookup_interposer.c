/* lookup_interposer.c - another preloaded library that wraps dlsym, as some tools do: counts calls
 * and forwards them. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static int asked;

void *dlsym(void *handle, const char *name)
{
	static void *(*next)(void *, const char *);
	void *function;

	if (!next)
		next = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym",
#if defined(__aarch64__)
		    "GLIBC_2.17");
#else
		    "GLIBC_2.2.5");
#endif
	if (!next || next == dlsym) {
		fprintf(stderr, "interposer: %s\n", next ? "found itself" : "found nothing");
		exit(1);
	}
	asked++;
	function = next(handle, name);
	__asm__ volatile(
	    ""
	    : "+r"(function)); /* no tail call: the next function must see us as the caller */
	return function;
}

static __attribute__((destructor)) void say(void)
{
	fprintf(stderr, "interposer: asked %d\n", asked);
}
