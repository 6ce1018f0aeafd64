/* Requests come in waves, each of more of them; the service starts a thread for each, and they are
 * all done before the next wave. What one of them needs is always as much. */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef SCALE
#define SCALE 1
#endif
#define PARTS 8

static char *make_part(size_t bytes)
{
	char *p = malloc(bytes);

	if (!p) {
		fprintf(stderr, "no memory for a part\n");
		exit(3);
	}
	memset(p, 1, bytes);
	return p;
}

static void *handle(void *arg)
{
	char *parts[PARTS];

	for (int i = 0; i < PARTS; i++) {
		parts[i] = make_part(SCALE * 40000 + 100 * i);
		usleep(2000);
	}
	for (int i = 0; i < PARTS; i++)
		free(parts[i]);
	return arg;
}

int main(void)
{
	static pthread_t threads[400];
	pthread_attr_t small;

	mallopt(M_ARENA_MAX, 1);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (int wave = 0; wave < 60; wave++) {
		int n = 8 + 6 * wave;

		for (int i = 0; i < n; i++)
			if (pthread_create(&threads[i], &small, handle, NULL))
				exit(4);
		for (int i = 0; i < n; i++)
			pthread_join(threads[i], NULL);
	}
	return 0;
}
