/*
 * resident.c - the recorder's own resident memory in its host, after work that makes it hold much.
 *
 *   resident blocks N    two threads acquire and release N blocks each
 *   resident stacks N    N blocks, each from a stack of its own
 *
 * Prints `resident KIB`, `trace KIB` (of it, in mappings of traces) and `frames N` (of the distinct
 * stacks, from main on).
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEVELS 32 /* of a stack: each has two ways on */

static long total_frames;

__attribute__((noinline)) static int deeper(uint32_t way, int level)
{
	if (level == LEVELS) {
		void *volatile p = malloc(40 + way % 7);

		free(p);
		total_frames += LEVELS + 2;
		return 1;
	}
	/* two calls, and so two return addresses */
	int r;
	if (way >> level & 1)
		r = deeper(way, level + 1) + 1;
	else
		r = deeper(way, level + 1) + 2;
	__asm__ volatile("" : "+r"(r));
	return r;
}

static void *work(void *arg)
{
	for (long i = (long)arg; i > 0; i--) {
		void *volatile p = malloc((size_t)(16 + i * 13 % 500));
		free(p);
	}
	return NULL;
}

/* Sum the numbers after a word, over the lines that begin with it, of mappings of traces only or
 * of all. */
static long smaps(int traces)
{
	char line[512];
	long sum = 0, kib;
	int here = 0;
	FILE *f = fopen("/proc/self/smaps", "re");

	while (f && fgets(line, sizeof line, f)) {
		unsigned long low, high;

		if (sscanf(line, "%lx-%lx", &low, &high) == 2)
			here = !traces || strstr(line, ".whyoom\n");
		else if (here && sscanf(line, "Rss: %ld", &kib) == 1)
			sum += kib;
	}
	if (f)
		fclose(f);
	return sum;
}

int main(int argc, char **argv)
{
	long n = argc > 2 ? atol(argv[2]) : 0;
	pthread_t t[2];

	if (argc > 1 && !strcmp(argv[1], "blocks")) {
		for (int i = 0; i < 2; i++)
			if (pthread_create(&t[i], NULL, work, (void *)n) != 0)
				return 95;
		for (int i = 0; i < 2; i++)
			pthread_join(t[i], NULL);
	} else if (argc > 1 && !strcmp(argv[1], "stacks")) {
		for (uint32_t i = 0; i < (uint32_t)n; i++)
			deeper(i * 2654435761u, 0); /* odd: each differs, and they part early */
	} else {
		return 96;
	}
	printf("resident %ld\ntrace %ld\nframes %ld\n", smaps(0), smaps(1), total_frames);
	return 0;
}
