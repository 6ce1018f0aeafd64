/*
 * exhaust.c - the address space comes to its end, and four threads go on all the same.
 *
 *   exhaust as THREADS FAILURES    RLIMIT_AS; prints a line a thread, see below
 *   exhaust storm N                N mallocs that fail; prints the nanoseconds of each
 *   exhaust maps                   one malloc that fails, then the size of all mappings
 *   exhaust mappings               pages that are mappings of their own, until one is refused;
 *                                  prints their number
 *   exhaust stacks                 threads until the stack of one is refused; prints their number
 *
 * Each line of `as` is `thread TID FAILED DONE`: failed calls, and small blocks that succeeded.
 * Some of the failing calls come from new depths of the stack, and one thread is born when no
 * memory is left, on a stack of the program's own.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HUGE ((size_t)1 << 40)
#define CHECK(c)                                                                                   \
	((c) ? (void)0 : (fprintf(stderr, "line %d: not so: %s\n", __LINE__, #c), _exit(97)))

static pthread_barrier_t ready;
static long failures;
static struct done {
	long tid, failed, done;
} results[64];

static __attribute__((noinline)) void *fail_deep(int depth, size_t size)
{
	char here[64];
	void *p;

	memset(here, depth, sizeof here);
	__asm__ volatile("" : : "r"(here) : "memory");
	p = depth ? fail_deep(depth - 1, size) : malloc(size);
	__asm__ volatile("" : : "r"(here) : "memory");
	return p;
}

static void storm(struct done *d)
{
	for (long i = 0; i < failures; i++) {
		void *volatile p = i % 64 ? malloc(HUGE) : fail_deep((int)(i / 64 % 300), HUGE);

		CHECK(!p && errno == ENOMEM);
		d->failed++;
		if (i % 4 == 0) {
			p = malloc(40);
			if (p)
				d->done++;
			free(p);
		}
	}
}

static void *worker(void *arg)
{
	struct done *d = arg;

	d->tid = syscall(SYS_gettid);
	free(malloc(100000));
	for (int i = 0; i < 100; i++)
		free(malloc(40));
	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&ready);
	storm(d);
	return NULL;
}

static void *late(void *arg)
{
	struct done *d = arg;

	d->tid = syscall(SYS_gettid);
	storm(d);
	return NULL;
}

static void use_up(void)
{
	char line[64];
	struct rlimit l;
	FILE *f = fopen("/proc/self/statm", "r");

	CHECK(f && fgets(line, sizeof line, f));
	fclose(f);
	l.rlim_cur = l.rlim_max = (rlim_t)atol(line) * (rlim_t)getpagesize() + (32u << 20);
	CHECK(setrlimit(RLIMIT_AS, &l) == 0);
	for (size_t size = 4 << 20; size >= 1024; size /= 2)
		while (malloc(size))
			;
}

static void as(int threads)
{
	static char stack[1 << 20] __attribute__((aligned(65536)));
	pthread_t t[64];
	pthread_attr_t attr;

	pthread_barrier_init(&ready, NULL, (unsigned)threads + 1);
	for (int i = 0; i < threads; i++)
		CHECK(pthread_create(&t[i], NULL, worker, &results[i]) == 0);
	pthread_barrier_wait(&ready);
	use_up();
	pthread_attr_init(&attr);
	CHECK(pthread_attr_setstack(&attr, stack, sizeof stack) == 0);
	CHECK(pthread_create(&t[threads], &attr, late, &results[threads]) == 0);
	pthread_barrier_wait(&ready);
	for (int i = 0; i <= threads; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i <= threads; i++)
		printf("thread %ld %ld %ld\n", results[i].tid, results[i].failed, results[i].done);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void many(long n)
{
	uint64_t start = now_ns();

	for (long i = 0; i < n; i++) {
		void *volatile p = malloc(HUGE * 1024);

		CHECK(!p);
	}
	printf("%" PRIu64 "\n", (now_ns() - start) / (uint64_t)n);
}

static void maps(void)
{
	static char text[1 << 20];
	int fd = open("/proc/self/maps", O_RDONLY);
	void *volatile p = malloc(HUGE * 1024);
	ssize_t n, have = 0;

	while ((n = read(fd, text + have, sizeof text - (size_t)have)) > 0)
		have += n;
	CHECK(!p && have > 0);
	have = write(1, text, (size_t)have);
}

static void *wait_for_end(void *arg)
{
	pause();
	return arg;
}

/* Stacks of 24 MiB, as long as there is room for one. */
static void stacks(void)
{
	struct rlimit limit = {1ul << 30, RLIM_INFINITY};
	pthread_attr_t attributes;
	pthread_t thread;
	int count = 0, rc;

	CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
	CHECK(pthread_attr_init(&attributes) == 0);
	CHECK(pthread_attr_setstacksize(&attributes, 24u << 20) == 0);
	while ((rc = pthread_create(&thread, &attributes, wait_for_end, NULL)) == 0)
		count++;
	CHECK(rc == EAGAIN);
	printf("%d\n", count);
}

static void mappings(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int count = 0, prot = PROT_READ;

	/* neighbours differ, or the kernel would join them */
	while (mmap(NULL, page, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) {
		prot ^= PROT_WRITE;
		count++;
	}
	CHECK(errno == ENOMEM);
	printf("%d\n", count);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	failures = argc > 3 ? atol(argv[3]) : 0;
	if (!strcmp(what, "as"))
		as(atoi(argv[2]));
	else if (!strcmp(what, "storm"))
		many(atol(argv[2]));
	else if (!strcmp(what, "maps"))
		maps();
	else if (!strcmp(what, "stacks"))
		stacks();
	else if (!strcmp(what, "mappings"))
		mappings();
	else
		return 96;
	return 0;
}
