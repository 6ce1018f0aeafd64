/* static.c - a program with NVIDIA's own runtime linked in. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

extern int cudaMalloc(void **, size_t);

int main(void)
{
	char *volatile much = malloc(1 << 20); /* a trace that is worth keeping */
	void *p;

	printf("%d\n", much ? cudaMalloc(&p, 4096) : -1);
	return 0;
}
