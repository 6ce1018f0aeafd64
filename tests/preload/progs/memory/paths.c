/*
 * paths.c - a program whose stacks are always new: each block is acquired at the end of another
 * way through two functions that call each other. It leaks slowly.
 *
 *   paths THREADS ROUNDS
 *
 * LEAKED: see leaks.h.
 */
#include "leaks.h"

#define DEPTH 40
#define LEAK_EACH 1000

static long rounds;

static __attribute__((noinline)) void keep_session(long me, long n)
{
	size_t size = 2000 + (size_t)(n / LEAK_EACH);
	void *p = malloc(size);

	leaks_note(me, p, size);
}

static __attribute__((noinline)) void right(long me, long n, uint64_t way, int depth);

static __attribute__((noinline)) void left(long me, long n, uint64_t way, int depth)
{
	if (!depth) {
		free(malloc(16 + (size_t)(n % 1000)));
		if (n % LEAK_EACH == 0)
			keep_session(me, n);
	} else if (way & 1) {
		left(me, n, way >> 1, depth - 1);
	} else {
		right(me, n, way >> 1, depth - 1);
	}
	__asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void right(long me, long n, uint64_t way, int depth)
{
	if (way & 1)
		right(me, n, way >> 1, depth ? depth - 1 : 0);
	else
		left(me, n, way >> 1, depth ? depth - 1 : 0);
	__asm__ volatile("" ::: "memory");
}

static void *worker(void *arg)
{
	uint64_t random = (uint64_t)(uintptr_t)arg + 1;

	for (long n = 0; n < rounds; n++) {
		random = random * 6364136223846793005ull + 1442695040888963407ull;
		left((long)(uintptr_t)arg, n, random >> 24, DEPTH);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = atoi(argv[1]);

	rounds = atol(argv[2]);
	if (!leaks_open() || threads > THREADS_MAX)
		return 2;
	run_threads(threads, worker);
	return 0;
}
