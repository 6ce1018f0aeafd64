/* A buffer of its own pages for each request, which nobody unmaps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef SCALE
#define SCALE 1
#endif

__attribute__((noinline)) static char *page_buffer(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return p;
}

int main(void)
{
	for (int i = 0; i < 1000000; i++) {
		char *request = malloc(3000), *page = page_buffer(131072 * SCALE);

		memset(request, i, 3000);
		memset(page, i, 131072 * SCALE);
		free(request);
	}
	return 0;
}
