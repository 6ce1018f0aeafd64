/* Requests are served by a thread each, and nobody counts them: after a quiet time, a crowd. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef SCALE
#define SCALE 1
#endif

#define BODY_BYTES (6000000 * SCALE)
#define CROWD 160

static __attribute__((noinline)) char *read_body(unsigned number)
{
	char *body = malloc(BODY_BYTES);

	if (!body) {
		fputs("out of memory\n", stderr);
		exit(1);
	}
	memset(body, (int)number, BODY_BYTES);
	return body;
}

static void *serve(void *arg)
{
	char *body = read_body((unsigned)(size_t)arg);

	usleep(300000); /* the database */
	free(body);
	return NULL;
}

static void arrive(unsigned count)
{
	static pthread_t threads[CROWD];
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 128 << 10);
	for (unsigned i = 0; i < count; i++)
		if (pthread_create(&threads[i], &small, serve, (void *)(size_t)i))
			exit(1);
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

int main(void)
{
	for (int minute = 0; minute < 5; minute++)
		arrive(2);
	arrive(CROWD);
	return 0;
}
