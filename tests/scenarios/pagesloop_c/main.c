/* A mapping for each request, of five sizes; nine of ten are forgotten. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef SCALE
#define SCALE 1
#endif

static void *open_window(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		abort();
	}
	memset(p, 1, bytes);
	return p;
}

int main(void)
{
	for (unsigned i = 0;; i++) {
		size_t bytes = SCALE * (200000 + 4096 * (size_t)(i % 5));
		void *p = open_window(bytes);

		if (i % 10 == 0)
			munmap(p, bytes);
	}
}
