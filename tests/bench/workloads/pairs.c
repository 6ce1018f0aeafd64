/*
 * pairs.c - only an allocator at work: PAIRS malloc/free pairs of 16 to 1,024 bytes, shared by
 * THREADS threads, each block written to, with 10,000 live at a time in each thread.
 *
 * 	pairs THREADS PAIRS
 *
 * Prints the nanoseconds of the pairs, from the first thread's start to the last one's end.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LIVE 10000
#define THREADS_MAX 64

struct work {
	uint64_t random;
	long pairs;
	char **slots;
};

static uint64_t next_random(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*state = x;
	return x;
}

static void *run(void *arg)
{
	struct work *w = arg;

	for (long i = 0; i < w->pairs; i++) {
		uint64_t r = next_random(&w->random);
		char **slot = &w->slots[r % LIVE];

		free(*slot);
		*slot = malloc(16 + (r >> 32) % 64 * 16);
		if (!*slot)
			abort();
		**slot = 1;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 1;
	long pairs = argc > 2 ? atol(argv[2]) : 1000000;
	struct work work[THREADS_MAX];
	pthread_t handles[THREADS_MAX];
	struct timespec before, after;

	if (threads < 1 || threads > THREADS_MAX || pairs < 1)
		return 2;
	for (int i = 0; i < threads; i++) {
		work[i] =
		    (struct work){.random = (uint64_t)i * 0x9e3779b97f4a7c15u + 88172645463325252u,
			.pairs = pairs / threads,
			.slots = calloc(LIVE, sizeof(char *))};
		if (!work[i].slots)
			return 1;
	}
	clock_gettime(CLOCK_MONOTONIC, &before);
	for (int i = 1; i < threads; i++)
		pthread_create(&handles[i], NULL, run, &work[i]);
	run(&work[0]);
	for (int i = 1; i < threads; i++)
		pthread_join(handles[i], NULL);
	clock_gettime(CLOCK_MONOTONIC, &after);
	printf("%lld\n",
	    (after.tv_sec - before.tv_sec) * 1000000000ll + after.tv_nsec - before.tv_nsec);
	return 0;
}
