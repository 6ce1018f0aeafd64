/* A server with a thread for each request: the day comes when many are sent at once. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PARTS 24
#define USUAL 6

static char *part(int number)
{
	size_t size = 200000 * SCALE + (size_t)number * 64;
	char *p = malloc(size);

	if (!p) {
		perror("part");
		exit(3);
	}
	memset(p, number, size);
	return p;
}

static void *answer(void *arg)
{
	char *parts[PARTS];

	for (int i = 0; i < PARTS; i++) {
		parts[i] = part(i);
		usleep(1000);
	}
	usleep(5000);
	for (int i = 0; i < PARTS; i++)
		free(parts[i]);
	return arg;
}

static void serve(int many)
{
	pthread_t threads[500];
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (int i = 0; i < many; i++)
		if (pthread_create(&threads[i], &small, answer, NULL))
			exit(4);
	for (int i = 0; i < many; i++)
		pthread_join(threads[i], NULL);
	pthread_attr_destroy(&small);
}

int main(void)
{
	for (int round = 0; round < 30; round++)
		serve(1 + round % USUAL);
	serve(500);
	return 0;
}
