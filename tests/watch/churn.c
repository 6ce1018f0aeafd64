/*
 * churn THREADS SECONDS ROUNDS: threads that pass blocks of random sizes from one to another, from
 * stacks of random depth; each round has new threads, which take over what the old ones left.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#define SLOTS 4096u
#define THREADS_MAX 64

static _Atomic(void *) slots[SLOTS];
static time_t seconds;

static __attribute__((noinline)) void *deep(unsigned n, size_t size)
{
	void *block = n ? deep(n - 1, size) : malloc(size);

	__asm__ volatile("" : "+r"(block)); /* no tail call */
	return block;
}

static void *work(void *arg)
{
	unsigned random = (unsigned)(size_t)arg * 2654435761u + 1;
	time_t end = time(NULL) + seconds;

	for (unsigned long n = 0; n % 1024 || time(NULL) < end; n++) {
		void *block;

		random = random * 1103515245 + 12345;
		block = deep(random >> 20 & 31, 16 + (random >> 8 & 1023));
		free(atomic_exchange(&slots[random >> 16 & (SLOTS - 1)], block));
		if (n % 64 == 0)
			nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 3 ? atoi(argv[1]) : 0, rounds = argc > 3 ? atoi(argv[3]) : 0;
	pthread_t ids[THREADS_MAX];

	if (threads < 1 || threads > THREADS_MAX)
		return 2;
	seconds = atoi(argv[2]);
	for (int r = 0; r < rounds; r++) {
		for (int i = 0; i < threads; i++)
			pthread_create(&ids[i], NULL, work, (void *)(size_t)(i + r * 1000));
		for (int i = 0; i < threads; i++)
			pthread_join(ids[i], NULL);
	}
	return 0;
}
