"""Shared by several tests' programs: work that leaves nothing, and blocks that are kept beside
it."""

HEAD = r"""
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void *kept[100000];

/* Work that leaves nothing. */
static void work(unsigned seed)
{
	void *scratch[32];

	for (unsigned i = 0; i < 32; i++) {
		size_t n = 100 + (seed * 7919u + i * 104729u) % 20000;

		scratch[i] = i % 3 ? malloc(n) : calloc(1, n);
		if (!scratch[i])
			_exit(3);
		memset(scratch[i], 1, n);
	}
	for (unsigned i = 0; i < 32; i++) {
		void *more = i % 5 ? scratch[i] : realloc(scratch[i], 30000);

		if (!more)
			_exit(3);
		free(more);
	}
}

static __attribute__((noinline)) void *keep(size_t n)
{
	void *p = malloc(n);

	if (!p) {
		fputs("out of memory\n", stderr);
		exit(1);
	}
	memset(p, 2, n);
	return p;
}
"""
