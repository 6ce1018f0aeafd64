/*
 * hoards.c - a server whose live set of small blocks keeps growing; one block in four is released
 * sooner or later.
 *
 *   hoards THREADS BLOCKS [emptied]
 *
 * When all threads are done it prints the live set: "blocks N bytes N"; `emptied`: after releasing
 * all of it. A mapping keeps the addresses, so that malloc holds only the blocks.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static long blocks;
static int emptied;
static long kept, kept_bytes;

struct held {
	void *block;
	size_t size;
};

static __attribute__((noinline)) void *keep_entry(size_t size)
{
	return malloc(size);
}

static void *hoard(void *arg)
{
	uint64_t random = (uint64_t)(uintptr_t)arg * 7919 + 1;
	struct held *held = mmap(NULL, (size_t)blocks * sizeof(*held), PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long bytes = 0, n = 0;

	if (held == MAP_FAILED)
		abort();
	for (long i = 0; i < blocks; i++) {
		random = random * 6364136223846793005ull + 1442695040888963407ull;
		held[i].size = 16 + (random >> 40) % 200;
		held[i].block = keep_entry(held[i].size);
		if (i % 4 == 3) {
			struct held *old = &held[(random >> 20) % (uint64_t)i];

			free(old->block);
			*old = (struct held){NULL, 0};
		}
	}
	for (long i = 0; i < blocks; i++) {
		if (emptied) {
			free(held[i].block);
			continue;
		}
		n += held[i].block != NULL;
		bytes += (long)held[i].size;
	}
	__atomic_fetch_add(&kept, n, __ATOMIC_RELAXED);
	__atomic_fetch_add(&kept_bytes, bytes, __ATOMIC_RELAXED);
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = atoi(argv[1]);
	pthread_t started[16];

	blocks = atol(argv[2]);
	emptied = argc > 3;
	if (threads > 16)
		return 2;
	for (long i = 0; i < threads; i++)
		pthread_create(&started[i], NULL, hoard, (void *)(intptr_t)(i + 1));
	for (int i = 0; i < threads; i++)
		pthread_join(started[i], NULL);
	printf("blocks %ld bytes %ld\n", kept, kept_bytes);
	return 0;
}
