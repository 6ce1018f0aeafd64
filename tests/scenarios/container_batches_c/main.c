/* In a container, near its limit all the time: a batch is collected, worked off and let go. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ITEMS = 440, BYTES = 100000, BATCHES = 60 };

static char *batch[ITEMS];

static __attribute__((noinline)) void collect(void)
{
	for (int i = 0; i < ITEMS; i++) {
		batch[i] = malloc(BYTES + 1000 * (i % 40));
		if (!batch[i])
			exit(1);
		memset(batch[i], i, BYTES);
	}
}

static __attribute__((noinline)) int work(void)
{
	int sum = 0;

	for (int i = 0; i < ITEMS; i++) {
		sum += batch[i][BYTES / 2];
		free(batch[i]);
	}
	return sum;
}

int main(void)
{
	int sum = 0;

	for (int i = 0; i < BATCHES; i++) {
		collect();
		usleep(5000);
		sum += work();
		usleep(2000);
	}
	return sum == -1;
}
