/* A server that answers in rounds: a thread for each request of a round, joined when all are
 * started. Most of them have ended by then. A round is larger than the one before. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef SCALE
#define SCALE 1
#endif

#define MOST 400

static void *answer(void *arg)
{
	char *body = malloc(20000);

	memset(body, 1, 20000);
	usleep(3000);
	free(body);
	return arg;
}

static void serve_round(int requests)
{
	pthread_t threads[MOST];
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, (4ul << 20) * SCALE);
	for (int i = 0; i < requests; i++)
		if (pthread_create(&threads[i], &attributes, answer, NULL)) {
			fputs("cannot start a thread\n", stderr);
			exit(1);
		}
	for (int i = 0; i < requests; i++)
		pthread_join(threads[i], NULL);
}

int main(void)
{
	for (int round = 8; round <= MOST; round += 4)
		serve_round(round);
	return 0;
}
