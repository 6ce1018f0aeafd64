/* counted.c - linked with lockfree_malloc.c: counts the entries into the real malloc. They must
 * equal this program's calls; the recording takes nothing from its host's heap. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

extern _Atomic long lockfree_calls;

__attribute__((noinline)) static void work(int depth)
{
	if (depth > 0) {
		work(depth - 1);
		__asm__ volatile("");
		return;
	}
	void *volatile p = malloc(100);
	p = realloc(p, 200);
	free(p);
	p = calloc(1, 50);
	free(p);
}

static void *loop(void *arg)
{
	for (int i = 0; i < 100000; i++)
		work(i % 40);
	return arg;
}

int main(void)
{
	loop(NULL);
	long before = lockfree_calls;
	loop(NULL);
	printf("%ld ", lockfree_calls - before);
	/* a thread's first allocations, and its end */
	pthread_t t;
	before = lockfree_calls;
	pthread_create(&t, NULL, loop, NULL);
	pthread_join(t, NULL);
	printf("%ld\n", lockfree_calls - before);
	return 0;
}
