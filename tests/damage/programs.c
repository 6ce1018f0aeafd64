/* programs.c - recorded programs to be damaged, by name: one that fails, leaks, works in several
 * threads, forks, or goes on until it is killed. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4

static void *kept[1 << 20];
static size_t kept_count;

__attribute__((noinline)) static void *take(size_t bytes)
{
	void *p = malloc(bytes);

	if (p)
		memset(p, 1, bytes < 4096 ? bytes : 4096);
	return p;
}

__attribute__((noinline)) static int keep(size_t bytes)
{
	void *p = take(bytes);

	if (p)
		kept[kept_count++ % (1 << 20)] = p;
	return p != NULL;
}

__attribute__((noinline)) static void work(int n)
{
	void *held[16] = {0};

	for (int i = 0; i < n; i++) {
		free(held[i % 16]);
		held[i % 16] = take((size_t)(40 + i * 37 % 900));
	}
	for (int i = 0; i < 16; i++)
		free(held[i]);
}

__attribute__((noinline)) static void request(size_t tokens)
{
	char *text = NULL;

	for (size_t n = 64; n <= tokens * 64; n *= 2) {
		char *more = realloc(text, n);

		if (!more)
			break;
		text = more;
		text[n - 1] = 1;
	}
	work(20);
	free(text);
}

static void limit(unsigned mib)
{
	struct rlimit r = {(rlim_t)mib << 20, (rlim_t)mib << 20};

	setrlimit(RLIMIT_AS, &r);
}

/* A leak until a request is refused. */
static int leak(int rounds)
{
	limit(160);
	for (int i = 0; keep(40000); i++) {
		work(rounds);
		request((size_t)(i % 7) * 100);
	}
	return 3;
}

static void *thread(void *rounds)
{
	for (int i = 0; i < 60; i++) {
		work(*(int *)rounds);
		request((size_t)(i % 5) * 100);
	}
	return take(200000);
}

static int threads(int rounds)
{
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, thread, &rounds);
	for (int i = 0; i < 200; i++)
		keep(20000);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	return 0;
}

static int forks(int rounds)
{
	for (int i = 0; i < 3; i++) {
		if (fork() == 0) {
			for (int k = 0; k < 40 * i; k++) {
				keep(30000);
				work(rounds);
			}
			_exit(i);
		}
		work(rounds);
	}
	while (wait(NULL) > 0)
		;
	return 0;
}

/* Grows, and is killed half-way. */
static int killed(int rounds)
{
	for (int i = 0; i < 300; i++) {
		keep(30000);
		work(rounds);
	}
	return raise(SIGKILL);
}

/* So much that a checkpoint replaces older events, with a small budget. */
static int weeks(int rounds)
{
	for (int i = 0; i < rounds; i++) {
		free(kept[i % 2000]);
		kept[i % 2000] = take(8192);
		if (i % 400 == 0)
			keep(65536);
		work(2);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int rounds);
	} programs[] = {
	    {"leak", leak},
	    {"threads", threads},
	    {"forks", forks},
	    {"killed", killed},
	    {"weeks", weeks},
	};

	for (size_t i = 0; argc > 2 && i < sizeof(programs) / sizeof(*programs); i++)
		if (!strcmp(argv[1], programs[i].name))
			return programs[i].run(atoi(argv[2]));
	return 2;
}
