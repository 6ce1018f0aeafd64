/*
 * weeks.c - a server that leaks slowly while much comes and goes.
 *
 *   weeks THREADS ROUNDS [fork]    ROUNDS 0: for ever
 *
 * The file named by LEAKED holds a struct leak for each block that is never released, written when
 * malloc has returned: thread's number, address, size. Of what comes and goes no thread has more
 * than LIVE at a time, and the sizes of both kinds differ. `fork`: half way, a child goes on alone,
 * with what it inherited, and its parent waits for it. Every thread maps and unmaps, too.
 *
 * LEAK_EACH: after so many rounds another block leaks.
 * TIGHT: after so many rounds of its first thread, the process may have no more address space,
 * and leaks a twentieth of that.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIVE 32

struct leak {
	uint64_t thread, address, size, pid;
};

static long rounds;
static long leak_each = 4000;
static long tight = -1;
static int leaked;

static __attribute__((noinline)) void *keep_session(long me, long n)
{
	size_t size = 2000 + (size_t)(n / leak_each);
	void *p = malloc(size);
	struct leak leak = {(uint64_t)me, (uint64_t)(uintptr_t)p, size, (uint64_t)getpid()};

	if (write(leaked, &leak, sizeof(leak)) != sizeof(leak))
		abort();
	return p;
}

/* Without malloc. */
static void use_up_address_space(void)
{
	struct rlimit limit;
	char text[64] = "";
	int fd = open("/proc/self/statm", O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 || getrlimit(RLIMIT_AS, &limit))
		abort();
	close(fd);
	limit.rlim_cur = (rlim_t)strtoul(text, NULL, 10) * (rlim_t)getpagesize();
	if (setrlimit(RLIMIT_AS, &limit))
		abort();
}

static __attribute__((noinline)) void serve(long me, long from, long to)
{
	void *live[LIVE] = {NULL};
	void *mapped = MAP_FAILED;

	for (long n = from; n < to || !rounds; n++) {
		unsigned slot = (unsigned)(n * 7 % LIVE);

		if (me == 0 && n == tight)
			use_up_address_space();
		free(live[slot]);
		live[slot] = malloc(16 + (size_t)(n * 31 % 1000));
		if (n % (tight >= 0 && n > tight ? 20 * leak_each : leak_each) == 0)
			keep_session(me, n);
		if (n % 1000 == 0 && (tight < 0 || n < tight)) {
			if (mapped != MAP_FAILED)
				munmap(mapped, 8192);
			mapped = mmap(
			    NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		}
	}
	for (unsigned i = 0; i < LIVE; i++)
		free(live[i]);
	if (mapped != MAP_FAILED)
		munmap(mapped, 8192);
}

static void *worker(void *arg)
{
	serve((long)(intptr_t)arg, 0, rounds);
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = atoi(argv[1]);
	pthread_t started[16];

	rounds = atol(argv[2]);
	leaked = open(getenv("LEAKED"), O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (leaked < 0 || threads > 16)
		return 2;
	if (getenv("LEAK_EACH"))
		leak_each = atol(getenv("LEAK_EACH"));
	if (getenv("TIGHT"))
		tight = atol(getenv("TIGHT"));
	if (argc > 3) {
		serve(0, 0, rounds / 2);
		if (fork() == 0) {
			serve(1, 0, rounds / 2);
			_exit(0);
		}
		wait(NULL);
		return 0;
	}
	for (long i = 0; i < threads; i++)
		pthread_create(&started[i], NULL, worker, (void *)(intptr_t)i);
	for (int i = 0; i < threads; i++)
		pthread_join(started[i], NULL);
	return 0;
}
