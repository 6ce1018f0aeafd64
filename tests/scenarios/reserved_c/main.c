/* A thread for each client, which needs little: but malloc takes 64 MiB of address space for each
 * of them, and in the end there is not enough left for the daily report, which always fitted. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SCALE
#define SCALE 1
#endif

#define CLIENTS 40
#define LINES 20
#define REPORT_BYTES (60000000ul)

static sem_t served;

static __attribute__((noinline)) void answer(void)
{
	char *lines[LINES];

	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < LINES; i++) {
			lines[i] = malloc((3000 + 100 * (size_t)i) * SCALE);
			if (!lines[i]) {
				fputs("out of memory\n", stderr);
				exit(1);
			}
			memset(lines[i], i, 3000 * SCALE);
		}
		for (int i = 0; i < LINES; i++)
			free(lines[i]);
	}
}

static void *client(void *arg)
{
	answer();
	sem_post(&served);
	for (;;)
		sem_wait(arg);
	return NULL;
}

static __attribute__((noinline)) void report(int day)
{
	char *text = malloc(REPORT_BYTES);

	if (!text) {
		fputs("out of memory\n", stderr);
		exit(1);
	}
	memset(text, day, REPORT_BYTES);
	free(text);
}

int main(void)
{
	static sem_t never;

	sem_init(&served, 0, 0);
	sem_init(&never, 0, 0);
	for (int day = 0; day < CLIENTS; day++) {
		pthread_t t;

		if (pthread_create(&t, NULL, client, &never))
			return 1;
		sem_wait(&served);
		report(day);
	}
	return 0;
}
