/* load THREADS: allocates without pause on so many threads, and checks that every block keeps what
 * was written to it and every register what was computed in it. Ends when its input ends. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIVE 64

static volatile int stop;
static unsigned long rounds[256];

static void wrong(const char *what)
{
	printf("wrong: %s\n", what);
	fflush(stdout);
	_exit(3);
}

static void *work(void *arg)
{
	unsigned long *count = arg;
	unsigned seed = (unsigned)(count - rounds) + 1;
	unsigned char *blocks[LIVE] = {0};
	size_t sizes[LIVE] = {0};
	double sum = 0;

	while (!stop) {
		unsigned i;

		seed = seed * 1664525u + 1013904223u;
		i = seed >> 26;
		if (blocks[i] && (blocks[i][0] != i || blocks[i][sizes[i] - 1] != i))
			wrong("a block");
		free(blocks[i]);
		sizes[i] = 16 + (seed >> 8) % 2000;
		blocks[i] = seed & 128 ? calloc(1, sizes[i]) : malloc(sizes[i]);
		blocks[i] = seed & 64 ? realloc(blocks[i], sizes[i] + 64) : blocks[i];
		memset(blocks[i], (int)i, sizes[i]);
		sum += 0.5;
		++*count;
		if (sum != 0.5 * (double)*count)
			wrong("a register");
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1;
	unsigned long sum = 0;
	pthread_t threads[256];
	char c;

	for (int i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, work, &rounds[i]);
	puts("ready");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	stop = 1;
	for (int i = 0; i < n; i++) {
		pthread_join(threads[i], NULL);
		sum += rounds[i];
	}
	printf("right after %lu rounds\n", sum);
	return 0;
}
