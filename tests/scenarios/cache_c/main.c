/* A warm cache: fills, then replaces. */
#include <stdlib.h>
#include <string.h>

#define SLOTS 500

static char *slots[SLOTS];

__attribute__((noinline)) static void look_up(unsigned key)
{
	unsigned at = key % SLOTS;

	free(slots[at]);
	slots[at] = malloc(100000);
	memset(slots[at], (int)key, 100000);
}

int main(void)
{
	unsigned x = 1;

	for (int i = 0; i < 30000; i++) {
		x = x * 1664525 + 1013904223;
		look_up(x >> 8);
	}
	return 0;
}
