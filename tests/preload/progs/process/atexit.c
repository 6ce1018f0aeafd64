/* atexit.c - allocations before main and after exit: constructors, destructors, atexit, on_exit.
 * The test looks for the sizes of the first and the last one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *early;

__attribute__((constructor(101))) static void first(void)
{
	early = malloc(70001);
	memset(early, 1, 70001);
}

__attribute__((destructor(101))) static void last(void)
{
	void *volatile p;

	free(early);
	p = malloc(70004);
	free(p);
}

static void at_exit(void)
{
	void *volatile p = calloc(1, 70003);
	free(p);
}

int main(int argc, char **argv)
{
	void *volatile p = malloc(70002);

	atexit(at_exit);
	free(p);
	return argc > 1 ? atoi(argv[1]) : 0;
}
