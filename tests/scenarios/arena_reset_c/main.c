/* A large arena, taken once and used anew by each request: big, and constant. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SCALE
#define SCALE 1
#endif

#define ARENA_BYTES (90000000ul * SCALE)

static char *arena;
static size_t used;

static void *take(size_t bytes)
{
	char *p = arena + used;

	if (used + bytes > ARENA_BYTES)
		return NULL;
	used += bytes;
	return p;
}

static __attribute__((noinline)) unsigned serve(unsigned number)
{
	unsigned sum = 0;

	used = 0;
	for (unsigned i = 0; i < 200; i++) {
		char *part = take(1000 + (number + i) % 50 * 1000), *copy;

		if (!part)
			return 0;
		memset(part, (int)i, 1000);
		copy = malloc(1000);
		if (!copy)
			exit(1);
		memcpy(copy, part, 1000);
		sum += (unsigned char)copy[i];
		free(copy);
	}
	return sum;
}

int main(void)
{
	unsigned sum = 0;

	arena = malloc(ARENA_BYTES);
	if (!arena)
		return 1;
	memset(arena, 0, ARENA_BYTES);
	for (unsigned n = 0; n < 3000; n++)
		sum += serve(n);
	printf("%u\n", sum);
	return 0;
}
