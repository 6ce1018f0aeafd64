/*
 * chaos.c - threads that fork while others allocate and signals come; children that make threads,
 * fork, execute this program or just end. Every block is filled, and checked before its release.
 *
 *   chaos SECONDS    prints the number of children
 *   chaos again      the work of a child that executes this program
 *
 * Exit status 99: a block had changed; others: the step that failed, see fail().
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCKS 16
#define GENERATIONS 2

static double until;
static char *self;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fail(int status, const char *what)
{
	fprintf(stderr, "chaos: %s\n", what);
	_exit(status);
}

static void fill(unsigned char *p, size_t size, int mark)
{
	for (size_t i = 0; i < size; i++)
		p[i] = (unsigned char)(mark + (int)i);
}

static void look(const unsigned char *p, size_t size, int mark)
{
	for (size_t i = 0; i < size; i += 97)
		if (p[i] != (unsigned char)(mark + (int)i))
			fail(99, "a block is not as it was left");
}

static void *get(unsigned *seed, size_t size)
{
	void *p = NULL;

	switch (rand_r(seed) % 4) {
	case 0:
		p = calloc(1, size);
		break;
	case 1:
		if (posix_memalign(&p, 64, size))
			p = NULL;
		break;
	default:
		p = malloc(size);
	}
	if (!p)
		fail(98, "no memory");
	return p;
}

static void churn(unsigned *seed, int turns)
{
	unsigned char *block[BLOCKS] = {0};
	size_t size[BLOCKS] = {0};

	for (; turns; turns--) {
		int k = rand_r(seed) % BLOCKS;
		int most = rand_r(seed) % 8 ? 2000 : 300000;

		if (block[k]) {
			look(block[k], size[k], k);
			if (rand_r(seed) % 4) {
				free(block[k]);
				block[k] = NULL;
				continue;
			}
		}
		size[k] = (size_t)(1 + rand_r(seed) % most);
		block[k] = block[k] ? realloc(block[k], size[k]) : get(seed, size[k]);
		if (!block[k])
			fail(98, "no memory");
		fill(block[k], size[k], k);
		if (rand_r(seed) % 50 == 0) {
			void *map = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			if (map == MAP_FAILED || munmap(map, 1 << 16))
				fail(97, "no mapping");
		}
	}
	for (int k = 0; k < BLOCKS; k++)
		free(block[k]);
}

static void *short_lived(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;

	churn(&seed, (int)(200 + seed % 300));
	return arg;
}

static void on_signal(int n)
{
	free(malloc((size_t)(100 + n)));
}

static pid_t forks(unsigned *seed, int generations);

static void child(unsigned *seed, int generations)
{
	pthread_t t[3];
	int threads = rand_r(seed) % 4, status;
	pid_t pid = 0;

	*seed += (unsigned)getpid() * 7919u;
	if (rand_r(seed) % 3 == 0)
		churn(seed, 50);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, short_lived, (void *)(uintptr_t)(rand_r(seed) | 1)))
			fail(96, "no thread");
	if (generations && rand_r(seed) % 3 == 0)
		pid = forks(seed, generations - 1);
	if (rand_r(seed) % 2)
		churn(seed, 300);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	if (pid && (waitpid(pid, &status, 0) != pid || status))
		fail(95, "a child's child failed");
	switch (rand_r(seed) % 4) {
	case 0:
		execl(self, self, "again", NULL);
		fail(94, "not executed");
		break;
	case 1:
		exit(0);
	default:
		_exit(0);
	}
}

static pid_t forks(unsigned *seed, int generations)
{
	pid_t pid = fork();

	if (pid < 0)
		fail(93, "no process");
	if (!pid)
		child(seed, generations);
	return pid;
}

static void *forking(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	uintptr_t count = 0;
	int status;

	for (; now() < until; count++) {
		pid_t pid = forks(&seed, GENERATIONS);

		while (waitpid(pid, &status, 0) < 0)
			if (errno != EINTR)
				fail(92, "a child is gone");
		if (status)
			fail(91, "a child failed");
		churn(&seed, 20);
	}
	return (void *)count;
}

static void *busy(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;

	while (now() < until)
		churn(&seed, 1000);
	return arg;
}

int main(int argc, char **argv)
{
	struct sigaction on = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	pthread_t forkers[3], others[2];
	unsigned seed = 1;
	long children = 0;
	void *count;

	self = argv[0];
	if (argc < 2 || !strcmp(argv[1], "again")) {
		churn(&seed, 30);
		return 0;
	}
	until = now() + atof(argv[1]);
	sigaction(SIGUSR1, &on, NULL);
	for (uintptr_t i = 0; i < 3; i++)
		if (pthread_create(&forkers[i], NULL, forking, (void *)(i * 2654435761u + 1)))
			fail(96, "no thread");
	for (uintptr_t i = 0; i < 2; i++)
		if (pthread_create(&others[i], NULL, busy, (void *)(i + 5)))
			fail(96, "no thread");
	while (now() < until) {
		kill(getpid(), SIGUSR1);
		usleep(2000);
	}
	for (int i = 0; i < 3; i++) {
		pthread_join(forkers[i], &count);
		children += (long)(uintptr_t)count;
	}
	for (int i = 0; i < 2; i++)
		pthread_join(others[i], NULL);
	printf("%ld\n", children);
	return 0;
}
