/*
 * weeks.c - a server that leaks slowly while many blocks come and go.
 *
 *   weeks THREADS ROUNDS [fork]    ROUNDS 0: for ever
 *
 * LEAKED: see leaks.h. Each thread has at most LIVE short-lived blocks at a time; the sizes of
 * leaked and short-lived blocks differ. `fork`: half-way, a child goes on alone with its
 * inheritance, and its parent waits for it. Every thread maps and unmaps, too.
 *
 * LEAK_EACH: the rounds between two leaked blocks.
 * TIGHT: after so many rounds of each thread, the process may have no more address space, and leaks
 * a twentieth of that.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../room.h"
#include "leaks.h"

#define LIVE 32

static long rounds;
static long leak_each = 4000;
static long tight = -1;
static pthread_barrier_t all; /* the threads, with TIGHT */

static __attribute__((noinline)) void *keep_session(long me, long n)
{
	size_t size = 2000 + (size_t)(n / leak_each);
	void *p = malloc(size);

	leaks_note(me, p, size);
	return p;
}

/* The others wait meanwhile: one that is just moving on to its next chunk has no chunk mapped, and
 * the limit would be below what the process has. */
static void tighten(long me)
{
	pthread_barrier_wait(&all);
	if (me == 0)
		limit_room(0);
	pthread_barrier_wait(&all);
}

static __attribute__((noinline)) void serve(long me, long from, long to)
{
	void *live[LIVE] = {NULL};
	void *mapped = MAP_FAILED;

	for (long n = from; n < to || !rounds; n++) {
		unsigned slot = (unsigned)(n * 7 % LIVE);

		if (n == tight)
			tighten(me);
		free(live[slot]);
		live[slot] = malloc(16 + (size_t)(n * 31 % 1000));
		if (n % (tight >= 0 && n > tight ? 20 * leak_each : leak_each) == 0)
			keep_session(me, n);
		if (n % 1000 == 0 && (tight < 0 || n < tight)) {
			if (mapped != MAP_FAILED)
				munmap(mapped, 8192);
			mapped = mmap(
			    NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		}
	}
	for (unsigned i = 0; i < LIVE; i++)
		free(live[i]);
	if (mapped != MAP_FAILED)
		munmap(mapped, 8192);
}

static void *worker(void *arg)
{
	serve((long)(intptr_t)arg, 0, rounds);
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = atoi(argv[1]);

	rounds = atol(argv[2]);
	if (!leaks_open() || threads > THREADS_MAX)
		return 2;
	if (getenv("LEAK_EACH"))
		leak_each = atol(getenv("LEAK_EACH"));
	if (getenv("TIGHT"))
		tight = atol(getenv("TIGHT"));
	pthread_barrier_init(&all, NULL, (unsigned)threads);
	if (argc > 3) {
		serve(0, 0, rounds / 2);
		if (fork() == 0) {
			serve(1, 0, rounds / 2);
			_exit(0);
		}
		wait(NULL);
		return 0;
	}
	run_threads(threads, worker);
	return 0;
}
