/* A server of forty threads, each with the usual stack of 8 MiB and little else, under a limit on
 * address space that forty stacks exceed. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef SCALE
#define SCALE 1
#endif

#define THREADS 40

static int pipes[2];

static void *worker(void *arg)
{
	char job;

	while (read(pipes[0], &job, 1) == 1)
		;
	return arg;
}

static void start_workers(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, (8ul << 20) * SCALE);
	for (int i = 0; i < THREADS; i++) {
		if (pthread_create(&thread, &attributes, worker, NULL)) {
			fputs("cannot start a worker\n", stderr);
			exit(1);
		}
		pthread_detach(thread);
	}
}

int main(void)
{
	if (pipe(pipes))
		return 2;
	start_workers();
	for (int i = 0; i < 2000; i++) {
		char *job = malloc(2000);

		memset(job, i, 2000);
		if (write(pipes[1], job, 1) != 1)
			return 2;
		free(job);
	}
	usleep(100000);
	return 0;
}
