/* entries.c - calls another allocator's own entry points: built once for each of jemalloc
 * (mallocx), tcmalloc (tc_*) and mimalloc (mi_*), linked with it. 300 blocks of 7001 bytes, each
 * grown to 7002 and released; the same with malloc, 8001 and 8002. */
#include <stdio.h>
#include <stdlib.h>

#if defined(JEMALLOC)
void *mallocx(size_t, int);
void *rallocx(void *, size_t, int);
void dallocx(void *, int);
#define GET(n) mallocx(n, 0)
#define GROW(p, n) rallocx(p, n, 0)
#define GIVE(p) dallocx(p, 0)
#elif defined(TCMALLOC)
void *tc_malloc(size_t);
void *tc_realloc(void *, size_t);
void tc_free(void *);
#define GET(n) tc_malloc(n)
#define GROW(p, n) tc_realloc(p, n)
#define GIVE(p) tc_free(p)
#elif defined(MIMALLOC)
void *mi_malloc(size_t);
void *mi_realloc(void *, size_t);
void mi_free(void *);
#define GET(n) mi_malloc(n)
#define GROW(p, n) mi_realloc(p, n)
#define GIVE(p) mi_free(p)
#endif

int main(void)
{
	for (int i = 0; i < 300; i++) {
		char *p = GET(7001);
		if (!p)
			return 1;
		p[7000] = 1;
		p = GROW(p, 7002);
		if (!p || p[7000] != 1)
			return 2;
		GIVE(p);
	}
	for (int i = 0; i < 300; i++) {
		void *p = malloc(8001);
		p = realloc(p, 8002);
		free(p);
	}
	puts("done");
	return 0;
}
