/* stacks.c - N blocks, each at the end of a random way through calls, nearly every way
 * different: a stack for a block. Three in four are released at once. Then a request beyond the
 * address space is refused, and the program ends: exit status 1. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#define DEPTH 20

static void **kept;
static size_t count;

static void leaf(uint64_t way)
{
	void *block = malloc(64 + (way & 255));

	if (!block)
		exit(2);
	if (way >> 32 & 3)
		free(block);
	else
		kept[count++] = block;
}

static void (*volatile left)(uint64_t, int), (*volatile right)(uint64_t, int);

/* The volatile after the call keeps it from being a jump. */
static volatile int done;

static void step(uint64_t way, int depth)
{
	if (!depth)
		leaf(way);
	else if (way >> depth & 1)
		left(way, depth - 1);
	else
		right(way, depth - 1);
	done++;
}

__attribute__((noinline)) static void go_left(uint64_t way, int depth)
{
	step(way, depth);
	done++;
}

__attribute__((noinline)) static void go_right(uint64_t way, int depth)
{
	step(way, depth);
	done--;
}

int main(int argc, char **argv)
{
	size_t blocks = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	struct rlimit limit = {1ul << 31, 1ul << 31};
	uint64_t state = 88172645463325252u;

	kept = malloc((blocks + 1) * sizeof(*kept));
	if (!kept || setrlimit(RLIMIT_AS, &limit))
		return 2;
	left = go_left;
	right = go_right;
	for (size_t i = 0; i < blocks; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		go_left(state, DEPTH);
	}
	if (malloc(1ul << 32))
		return 2;
	perror("stacks");
	return 1;
}
