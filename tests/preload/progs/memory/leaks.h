/* leaks.h - a program's own account of its leaks, and threads to leak: the file named by LEAKED
 * holds a struct leak for each block that is never released, written when malloc has returned. */
#ifndef TESTS_PRELOAD_PROGS_LEAKS_H
#define TESTS_PRELOAD_PROGS_LEAKS_H

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS_MAX 16

struct leak {
	uint64_t thread, address, size, pid;
};

static int leaked;

/* Return false if it cannot be written. */
static inline bool leaks_open(void)
{
	leaked = open(getenv("LEAKED"), O_WRONLY | O_CREAT | O_APPEND, 0600);
	return leaked >= 0;
}

static inline void leaks_note(long thread, const void *block, size_t size)
{
	struct leak leak = {(uint64_t)thread, (uint64_t)(uintptr_t)block, size, (uint64_t)getpid()};

	if (write(leaked, &leak, sizeof(leak)) != sizeof(leak))
		abort();
}

/* Run until all have ended; each gets its number. */
static inline void run_threads(int threads, void *(*worker)(void *number))
{
	pthread_t started[THREADS_MAX];

	for (long i = 0; i < threads; i++)
		pthread_create(&started[i], NULL, worker, (void *)(intptr_t)i);
	for (int i = 0; i < threads; i++)
		pthread_join(started[i], NULL);
}

#endif
