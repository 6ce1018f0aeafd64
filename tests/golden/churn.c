/* churn.c - threads that hand blocks to each other, for a fresh trace of the real library:
 * malloc, calloc, realloc that moves, fails and releases, aligned blocks, mappings. */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define SHARED 64

static void *_Atomic shared[SHARED];

static void *work(void *arg)
{
	uint32_t seed = (uint32_t)(uintptr_t)arg;
	void *own[100] = {0}, *p;

	for (int i = 0; i < 6000; i++) {
		seed = seed * 1664525 + 1013904223;
		unsigned k = (seed >> 8) % 100, size = (seed >> 16) % 3000 + 1;

		switch (seed >> 29) {
		case 0:
			p = realloc(own[k], size);
			own[k] = p ? p : own[k];
			break;
		case 1:
			free(own[k]);
			own[k] = calloc(size, 3);
			break;
		case 2:
			free(own[k]);
			own[k] = aligned_alloc(64, (size + 63) / 64 * 64);
			break;
		case 3:
			p = realloc(
			    own[k], (size_t)PTRDIFF_MAX - size); /* fails: the block stays */
			if (p)
				abort();
			break;
		case 4:
			p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
			if (p != MAP_FAILED) {
				madvise(p, 4096, MADV_DONTNEED);
				munmap(p, 65536);
			}
			break;
		default:
			/* One thread acquires, another releases. */
			p = malloc(size);
			free(
			    __atomic_exchange_n((void **)&shared[k % SHARED], p, __ATOMIC_ACQ_REL));
			break;
		}
	}
	for (int i = 0; i < 100; i++)
		free(own[i]);
	return NULL;
}

int main(void)
{
	pthread_t threads[4];

	for (uintptr_t i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)(i + 1)))
			return 1;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return 17;
}
