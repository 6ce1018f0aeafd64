/* The last forty results stay on the device; then a crowd comes. */
#include "gpu.h"

#include <pthread.h>

static gpu_ptr ring[40];
static int at;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void handle(void)
{
	gpu_ptr scratch, result, old;

	TAKE(&scratch, 10 * MB);
	TAKE(&result, 2 * MB);
	usleep(60000);
	gpu_free(scratch);
	pthread_mutex_lock(&lock);
	old = ring[at % 40];
	ring[at++ % 40] = result;
	pthread_mutex_unlock(&lock);
	if (old)
		gpu_free(old);
}

static void *serve(void *arg)
{
	gpu_set(gpu_context);
	handle();
	return arg;
}

int main(void)
{
	pthread_t crowd[512];

	gpu_open();
	for (int i = 0; i < 60; i++) {
		pthread_create(&crowd[0], NULL, serve, NULL);
		pthread_join(crowd[0], NULL);
	}
	for (int n = 10; n <= 320; n *= 2) {
		for (int i = 0; i < n; i++)
			pthread_create(&crowd[i], NULL, serve, NULL);
		for (int i = 0; i < n; i++)
			pthread_join(crowd[i], NULL);
	}
	return 0;
}
