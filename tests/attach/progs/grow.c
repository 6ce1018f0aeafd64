/* grow THREADS: allocates without pause on so many threads. A line of input makes it keep 1000
 * blocks more, and say by how much the allocator's own account grew for them. */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile int stop;

static void *work(void *arg)
{
	unsigned char *blocks[64] = {0};
	unsigned seed = 1;

	while (!stop) {
		unsigned i;

		seed = seed * 1664525u + 1013904223u;
		i = seed >> 26;
		if (blocks[i] && blocks[i][0] != i)
			_exit(3);
		free(blocks[i]);
		blocks[i] = malloc(16 + (seed >> 8) % 2000);
		blocks[i][0] = (unsigned char)i;
	}
	return arg;
}

/* The allocator rounds each block up to 16 bytes, with 8 of its own. */
static size_t grow(void)
{
	size_t bytes = 0;

	for (size_t i = 0; i < 1000; i++) {
		char *block = malloc(20000 + i);

		memset(block, 1, 20000 + i);
		bytes += malloc_usable_size(block);
	}
	return bytes;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t threads[256];
	char line[64];
	unsigned rounds = 0;

	for (int i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	puts("ready");
	fflush(stdout);
	for (; fgets(line, sizeof(line), stdin); rounds++) {
		printf("grew %zu\n", grow());
		fflush(stdout);
	}
	stop = 1;
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	printf("right after %u rounds\n", rounds);
	return 0;
}
