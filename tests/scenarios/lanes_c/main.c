/* A server that takes the buffers of its largest batch at start. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SCALE
#define SCALE 1
#endif
#define BATCH 48

static char *slots[BATCH];

__attribute__((noinline)) static void reserve(size_t each)
{
	for (int i = 0; i < BATCH; i++) {
		slots[i] = malloc(each);
		if (!slots[i]) {
			fprintf(stderr, "cannot reserve slot %d\n", i);
			exit(1);
		}
		memset(slots[i], 0, each);
	}
}

__attribute__((noinline)) static int run(int i)
{
	char *in = malloc((size_t)(400000 + i % 100 * 1000)), *out = malloc(200000);
	int result;

	memset(in, i, 400000);
	memset(out, i, 1000);
	memcpy(slots[i % 3], in, 400000);
	result = in[5] + out[7];
	free(in);
	free(out);
	return result;
}

int main(void)
{
	char *vocabulary = malloc(6 << 20);
	int sum = 0;

	memset(vocabulary, 1, 6 << 20);
	reserve((size_t)(8 << 20) * SCALE);
	for (int i = 0; i < 2000; i++)
		sum += run(i);
	return vocabulary[sum & 255] == 2;
}
