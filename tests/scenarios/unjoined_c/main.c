/* A server that starts a thread for each request, which ends with it. Nobody joins or detaches
 * them, so their stacks stay, though only a few are at work. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef SCALE
#define SCALE 1
#endif

static void *answer(void *arg)
{
	char *body = malloc(20000);

	memset(body, 1, 20000);
	usleep(8000);
	free(body);
	return arg;
}

static void accept_request(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, (4ul << 20) * SCALE);
	if (pthread_create(&thread, &attributes, answer, NULL)) {
		fputs("cannot start a thread\n", stderr);
		exit(1);
	}
}

int main(void)
{
	for (int i = 0; i < 250; i++) {
		accept_request();
		usleep(4000);
	}
	return 0;
}
