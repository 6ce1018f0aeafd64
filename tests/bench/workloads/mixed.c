/* mixed.c THREADS EVENTS LIMIT PART KEPT - a service at work: each thread keeps KEPT blocks of
 * 16 bytes to 4 MiB, each size as likely as its double, made at eight call sites, replaces them
 * by new ones, and loses a block every fifty times, until RLIMIT_AS, which is LIMIT MiB,
 * refuses. The lost ones fill PART percent of it after about EVENTS acquisitions and releases.
 * Exit status 1, always. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define KEPT_MOST 128
#define LEAST_SHIFT 4
#define SHIFTS 18
#define LOSE 50

static size_t lost_bytes;
static uint32_t kept_blocks;
static void *volatile lost;

static uint32_t dice(uint64_t *state, uint32_t sides)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)(*state >> 32) % sides;
}

#define PLACE(n)                                                                                   \
	static __attribute__((noinline)) char *place##n(size_t bytes)                              \
	{                                                                                          \
		char *p = malloc(bytes);                                                           \
                                                                                                   \
		if (p)                                                                             \
			p[0] = n;                                                                  \
		return p;                                                                          \
	}
PLACE(0)
PLACE(1)
PLACE(2)
PLACE(3)
PLACE(4)
PLACE(5)
PLACE(6)
PLACE(7)

static char *(*const places[])(size_t) = {
    place0, place1, place2, place3, place4, place5, place6, place7};

static __attribute__((noinline)) char *lose(size_t bytes)
{
	char *p = malloc(bytes);

	if (p)
		memset(p, 1, bytes);
	return p;
}

static void *work(void *arg)
{
	uint64_t state = 88172645463325252ull + (uintptr_t)arg * 7919;
	char *kept[KEPT_MOST] = {NULL};

	for (uint64_t i = 0;; i++) {
		uint32_t at = dice(&state, kept_blocks), shift = LEAST_SHIFT + dice(&state, SHIFTS);

		if (i % LOSE == 0) {
			lost = lose(lost_bytes);
			if (!lost)
				exit(1);
			continue;
		}
		free(kept[at]);
		kept[at] = places[dice(&state, 8)]((1u << shift) + dice(&state, 1u << shift));
		if (!kept[at])
			exit(1);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 1;
	uint64_t events = argc > 2 ? strtoull(argv[2], NULL, 10) : 2000000,
		 bytes = (argc > 3 ? strtoull(argv[3], NULL, 10) : 1500) << 20,
		 part = argc > 4 ? strtoull(argv[4], NULL, 10) : 75;
	struct rlimit limit = {bytes, bytes};
	pthread_t thread;

	kept_blocks = argc > 5 ? (uint32_t)atoi(argv[5]) : KEPT_MOST;
	if (!kept_blocks || kept_blocks > KEPT_MOST)
		return 2;
	setrlimit(RLIMIT_AS, &limit);
	lost_bytes = bytes / 100 * part / (events / 2 / LOSE + 1);
	for (int i = 1; i < threads; i++)
		if (pthread_create(&thread, NULL, work, (void *)(uintptr_t)i))
			return 1;
	work(NULL);
	return 1;
}
