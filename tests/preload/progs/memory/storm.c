/*
 * storm.c - threads that allocate until they are done, or are killed.
 *
 *   storm THREADS ROUNDS [cross|family|at SLOT]    ROUNDS 0: for ever
 *
 * The file named by COUNTERS holds a struct for each thread: its tid, and the numbers of returned
 * acquisitions and releases. Sizes follow from the thread's number and the round, so a test can
 * check the trace event by event. `cross`: another thread releases each block. `family`: meanwhile
 * a child with threads, another one that executes the program anew, and children one after the
 * other. `at`: the first thread has that number.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIVE 64
#define MAX_THREADS 64

struct counter {
	_Atomic uint64_t tid, allocs, frees;
	uint64_t pad[5];
};
static struct counter *counters;
static long rounds;
static pthread_barrier_t barrier;

static void *worker(void *arg)
{
	long me = (long)arg;
	struct counter *c = &counters[me];
	void *live[LIVE] = {NULL};

	c->tid = (uint64_t)syscall(SYS_gettid);
	pthread_barrier_wait(&barrier);
	for (long i = 0; !rounds || i < rounds; i++) {
		size_t size = (size_t)(16 + (me * 7919 + i * 31) % 1000);
		int at = (int)(i % LIVE);

		if (live[at] && i % 5 == 0) {
			live[at] = realloc(live[at], size);
			c->frees++;
			c->allocs++;
			continue;
		}
		if (live[at]) {
			free(live[at]);
			c->frees++;
		}
		live[at] = i % 3 ? malloc(size) : calloc(1, size);
		c->allocs++;
	}
	for (int i = 0; i < LIVE; i++) {
		if (live[i]) {
			free(live[i]);
			c->frees++;
		}
	}
	return NULL;
}

/* Slots through which all threads swap blocks: an address moves from CPU to CPU at once. */
static void *slots[256];

static void *swapper(void *arg)
{
	long me = (long)arg;
	struct counter *c = &counters[me];
	uint32_t r = (uint32_t)me * 77 + 5;

	c->tid = (uint64_t)syscall(SYS_gettid);
	pthread_barrier_wait(&barrier);
	for (long i = 0; !rounds || i < rounds; i++) {
		r = r * 1664525 + 1013904223;
		void *p = malloc(32 + (r >> 20) % 3 * 16);
		c->allocs++;
		p = __atomic_exchange_n(&slots[(r >> 8) % 256], p, __ATOMIC_ACQ_REL);
		if (p) {
			free(p);
			c->frees++;
		}
	}
	return NULL;
}

/* Threads of this process, from the slot `first` on. */
static void start(pthread_t *t, int threads, long first, void *(*work)(void *))
{
	pthread_barrier_init(&barrier, NULL, (unsigned)threads);
	for (long i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, work, (void *)(first + i)) != 0)
			_exit(95);
}

static void child(const char *self, long first, int executes)
{
	pthread_t t[2];

	if (fork() != 0)
		return;
	rounds = executes ? 300 : 0;
	start(t, 2, first, worker);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	execl(self, self, "2", "0", "at", "12", (char *)NULL);
	_exit(94);
}

/* One after the other, while other threads hold any locks. */
static void short_children(void)
{
	for (long slot = 16; slot < MAX_THREADS; slot++) {
		if (fork() == 0) {
			rounds = 300;
			pthread_barrier_init(&barrier, NULL, 1);
			worker((void *)slot);
			_exit(0);
		}
		wait(NULL);
	}
}

/* The peak of resident memory, in KiB. */
static void print_peak(void)
{
	char text[4096];
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof text - 1);

	close(fd);
	text[n > 0 ? n : 0] = 0;
	const char *at = strstr(text, "VmHWM:");
	printf("%ld\n", at ? atol(at + 6) : -1);
}

int main(int argc, char **argv)
{
	pthread_t t[MAX_THREADS];
	const char *path = getenv("COUNTERS");
	const char *way = argc > 3 ? argv[3] : "";
	int threads = argc > 1 ? atoi(argv[1]) : 4, family = !strcmp(way, "family");
	int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;

	rounds = argc > 2 ? atol(argv[2]) : 0;
	if (threads > MAX_THREADS || fd < 0 || ftruncate(fd, sizeof *counters * MAX_THREADS) != 0)
		return 96;
	counters =
	    mmap(NULL, sizeof *counters * MAX_THREADS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (family) {
		child(argv[0], 8, 0);
		child(argv[0], 10, 1);
	}
	start(t, threads, argc > 4 ? atol(argv[4]) : 0, strcmp(way, "cross") ? worker : swapper);
	if (family)
		short_children();
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < 256; i++)
		free(slots[i]);
	print_peak();
	return 0;
}
