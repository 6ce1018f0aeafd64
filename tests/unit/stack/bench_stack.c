/* bench_stack.c - the cost of a capture: of one stack repeated, of a loop whose inner frames
 * change, and of 2,000 random stacks of about 22 frames. Prints nanoseconds per capture, without
 * the calls that make the stacks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "under.h"

#define STACKS 2000
#define DEPTH 18

static unsigned char paths[STACKS][DEPTH + 1];
static volatile unsigned sink;
static int capture;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void go(const unsigned char *path);

#define FUNCTION(n)                                                                                \
	static __attribute__((noinline)) unsigned f##n(                                            \
	    const unsigned char *path, unsigned a, unsigned b)                                     \
	{                                                                                          \
		volatile unsigned room[n % 5 + 1];                                                 \
		room[0] = a;                                                                       \
		go(path);                                                                          \
		__asm__ volatile("" ::: "memory");                                                 \
		return room[0] * b + n;                                                            \
	}
FUNCTION(0)
FUNCTION(1)
FUNCTION(2)
FUNCTION(3)
FUNCTION(4)
FUNCTION(5)
FUNCTION(6)
FUNCTION(7)

static __attribute__((noinline)) void leaf(void)
{
	if (capture)
		sink = under_hook(false);
	__asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void go(const unsigned char *path)
{
	static unsigned (*const f[])(const unsigned char *, unsigned, unsigned) = {
	    f0, f1, f2, f3, f4, f5, f6, f7};
	if (*path == 0xff) {
		leaf();
	} else {
		unsigned c = *path;

		sink = f[c](path + 1, c, sink);
	}
	__asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) double hot(int depth, long n)
{
	double t;

	if (depth > 0) {
		t = hot(depth - 1, n);
		__asm__ volatile("" ::: "memory");
		return t;
	}
	t = now();
	for (long i = 0; i < n; i++)
		leaf();
	return (now() - t) / (double)n;
}

static double random_stacks(long n)
{
	unsigned r = 1;
	double t = now();

	for (long i = 0; i < n; i++) {
		r = r * 1103515245 + 12345;
		go(paths[(r >> 8) % STACKS]);
	}
	return (now() - t) / (double)n;
}

/* The outer frames stay, the inner three change. */
static double inner(long n)
{
	static const unsigned char tail[][4] = {
	    {1, 2, 3, 0xff}, {4, 5, 6, 0xff}, {1, 5, 0, 0xff}, {7, 2, 3, 0xff}};
	double t = now();

	for (long i = 0; i < n; i++)
		go(tail[i & 3]);
	return (now() - t) / (double)n;
}

static __attribute__((noinline)) double inner_at(int depth, long n)
{
	double t = depth ? inner_at(depth - 1, n) : inner(n);

	__asm__ volatile("" ::: "memory");
	return t;
}

static double best(double (*f)(int, long), int depth, long n)
{
	double with = 1e9, without = 1e9;

	for (int i = 0; i < 5; i++) {
		double b, a;

		capture = 0;
		a = f(depth, n);
		capture = 1;
		b = f(depth, n);
		without = a < without ? a : without;
		with = b < with ? b : with;
	}
	return with - without;
}

static double random_at(int depth, long n)
{
	(void)depth;
	return random_stacks(n);
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 200000;

	if (under_init())
		return 1;
	srand(1);
	for (int i = 0; i < STACKS; i++) {
		int d = 4 + rand() % (DEPTH / 2 - 3);

		for (int k = 0; k < d; k++)
			paths[i][k] = (unsigned char)(rand() % 8);
		paths[i][d] = 0xff;
	}
	printf("unchanged, 10 frames: %.1f ns\n", best(hot, 4, n));
	printf("unchanged, 22 frames: %.1f ns\n", best(hot, 16, n));
	printf("unchanged, 60 frames: %.1f ns\n", best(hot, 54, n));
	printf("unchanged, 900 frames: %.1f ns\n", best(hot, 894, n / 10));
	printf("inner 7 of 26 frames change: %.1f ns\n", best(inner_at, 16, n));
	printf("2,000 random stacks: %.1f ns\n", best(random_at, 0, n));
	return 0;
}
