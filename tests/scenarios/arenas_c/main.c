/* Jobs run one at a time, each on a thread of its own that stays for the next: what a job freed
 * stays in its thread's arena, pinned by the little that it left. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SCALE
#define SCALE 1
#endif

#define THREADS 24
#define PIECES 600
#define PIECE_BYTES (40000 * SCALE)

static sem_t go[THREADS], done;

struct result {
	double score[8];
};
static struct result *results[THREADS];

static __attribute__((noinline)) struct result *job(unsigned number)
{
	char **pieces = malloc(PIECES * sizeof(*pieces));
	struct result *r;

	for (int i = 0; pieces && i < PIECES; i++) {
		pieces[i] = malloc(PIECE_BYTES);
		if (!pieces[i]) {
			fputs("out of memory\n", stderr);
			exit(1);
		}
		memset(pieces[i], (int)number, PIECE_BYTES);
	}
	r = calloc(1, sizeof(*r));
	if (!pieces || !r)
		exit(1);
	for (int i = 0; i < PIECES; i++) {
		r->score[i % 8] += pieces[i][i];
		free(pieces[i]);
	}
	free(pieces);
	return r;
}

static void *thread(void *arg)
{
	unsigned number = (unsigned)(size_t)arg;

	for (;;) {
		sem_wait(&go[number]);
		free(results[number]);
		results[number] = job(number);
		sem_post(&done);
	}
	return NULL;
}

int main(void)
{
	sem_init(&done, 0, 0);
	for (size_t i = 0; i < THREADS; i++) {
		pthread_t t;

		sem_init(&go[i], 0, 0);
		if (pthread_create(&t, NULL, thread, (void *)i))
			return 1;
	}
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < THREADS; i++) {
			sem_post(&go[i]);
			sem_wait(&done);
		}
	return 0;
}
