/* common.h - what every carrier in C needs: the end of memory, waiting, a request's length. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The compiler must not take away a block that is made and dropped in one function. */
#define USED(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")

__attribute__((noreturn, noinline)) static void out_of_memory(void)
{
	fputs("out of memory\n", stderr);
	_exit(1);
}

__attribute__((unused)) static void wait_ms(long ms)
{
	struct timespec left = {ms / 1000, ms % 1000 * 1000000};

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

__attribute__((unused)) static long length_of(long number)
{
	uint64_t h = (uint64_t)number * 0x9e3779b97f4a7c15u;

	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9u;
	return 100 + (long)((h >> 33) % 901);
}
