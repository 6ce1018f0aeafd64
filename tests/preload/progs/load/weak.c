/* weak.c - asks which allocator there is, as some libraries do; prints dlsym's answer for
 * malloc. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

extern void *mallocx(size_t, int) __attribute__((weak));
extern int mallctl(const char *, void *, size_t *, void *, size_t) __attribute__((weak));
extern void *tc_malloc(size_t) __attribute__((weak));
extern void *mi_malloc(size_t) __attribute__((weak));
extern void *je_malloc(size_t) __attribute__((weak));

int main(void)
{
	static const char *const names[] = {"mallocx", "tc_malloc", "mi_malloc", "je_malloc",
	    "sdallocx", "nallocx", "tc_free", "mi_free", "cuInit", "cudaMalloc", "no_such_symbol"};

	printf("%d%d%d%d%d", mallocx != NULL, mallctl != NULL, tc_malloc != NULL, mi_malloc != NULL,
	    je_malloc != NULL);
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		printf(" %d", dlsym(RTLD_DEFAULT, names[i]) != NULL);
	void *(*next)(size_t) = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "malloc");
	for (int i = 0; i < 500; i++)
		free(next(9001));
	printf(" %d\n", dlsym(RTLD_NEXT, "malloc") != NULL);
	return 0;
}
