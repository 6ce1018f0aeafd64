/* Four threads take buffers from a pool that is bounded, and give them back. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BUFFERS 32

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *pool[BUFFERS];
static int free_count;

static char *take(void)
{
	char *b = NULL;

	pthread_mutex_lock(&lock);
	if (free_count)
		b = pool[--free_count];
	pthread_mutex_unlock(&lock);
	return b ? b : malloc(500000);
}

static void give(char *b)
{
	pthread_mutex_lock(&lock);
	if (free_count < BUFFERS) {
		pool[free_count++] = b;
		b = NULL;
	}
	pthread_mutex_unlock(&lock);
	free(b);
}

static void *work(void *arg)
{
	for (int i = 0; i < 60000; i++) {
		char *b = take();
		char *scratch = malloc((size_t)(1000 + i % 500));

		memset(b, i, 5000);
		free(scratch);
		give(b);
	}
	return arg;
}

int main(void)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
