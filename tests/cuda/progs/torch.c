/*
 * torch.c - loads the stand-in for PyTorch as Python would, with RTLD_LOCAL, and allocates: `torch
 * C10_CUDA C10 [ROUNDS]`. Prints what the real functions received, and with ROUNDS the cost of one
 * call in ns.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void *must(void *p)
{
	if (!p) {
		fprintf(stderr, "%s\n", dlerror());
		exit(3);
	}
	return p;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	void *cuda = must(dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)),
	     *c10 = must(dlopen(argv[2], RTLD_NOW));
	void (*take)(unsigned, int64_t, int) =
	    (void (*)(unsigned, int64_t, int))must(dlsym(cuda, "block_take"));
	void (*give)(unsigned, int64_t) =
	    (void (*)(unsigned, int64_t))must(dlsym(cuda, "block_give"));
	void (*fail)(int64_t) = (void (*)(int64_t))must(dlsym(cuda, "block_failure"));
	void (*received)(uint64_t *) = (void (*)(uint64_t *))must(dlsym(c10, "received"));
	int (*violations)(void) = (int (*)(void))must(dlsym(cuda, "stand_violations"));
	long rounds = argc > 3 ? atol(argv[3]) : 0;
	uint64_t got[3], segment;
	int (*init)(unsigned), (*set)(void *), (*alloc)(uint64_t *, size_t);
	double began;

	/* the driver is known and could be queried */
	init = (int (*)(unsigned))must(dlsym(cuda, "cuInit"));
	set = (int (*)(void *))must(dlsym(cuda, "cuCtxSetCurrent"));
	alloc = (int (*)(uint64_t *, size_t))must(dlsym(cuda, "cuMemAlloc_v2"));
	if (init(0) || set(cuda) || alloc(&segment, 1 << 21))
		return 5;
	errno = 4242;
	take(512, 1024, 1);
	take(4096, 2048, 1);
	take(8192, 100, 0); /* a block of the CPU, reported while a profiler runs */
	give(512, 1024);
	fail(1 << 30);
	if (errno != 4242)
		return 4;
	if (rounds) {
		for (int i = 0; i < 10000; i++) {
			take(16384, 512, 1);
			give(16384, 512);
		}
		for (int round = 0; round < 10; round++) {
			began = now();
			for (long i = 0; i < rounds; i++) {
				take(16384, 512, 1);
				give(16384, 512);
			}
			printf("%.1f ns\n", (now() - began) / (2.0 * (double)rounds));
		}
		return 0;
	}
	received(got);
	printf("%lu %lu %lu %d\n", (unsigned long)got[0], (unsigned long)got[1],
	    (unsigned long)got[2], violations());
	return 0;
}
