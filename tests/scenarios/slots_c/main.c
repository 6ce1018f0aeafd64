/* A batching server: at the first batch a slot is made ready for each member of the largest batch.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SCALE
#define SCALE 1
#endif

#define MAX_BATCH 192
#define SLOT_BYTES (8000000 * SCALE)

static char *slots[MAX_BATCH];

static __attribute__((noinline)) void make_slots(void)
{
	for (int i = 0; i < MAX_BATCH; i++) {
		slots[i] = malloc(SLOT_BYTES);
		if (!slots[i]) {
			fputs("out of memory\n", stderr);
			exit(1);
		}
		memset(slots[i], 0, SLOT_BYTES);
	}
}

static __attribute__((noinline)) int run_batch(int members)
{
	int sum = 0;

	if (!slots[0])
		make_slots();
	for (int i = 0; i < members; i++) {
		char *text = malloc(4000);

		if (!text)
			exit(1);
		memset(text, i, 4000);
		memcpy(slots[i], text, 4000);
		sum += slots[i][i];
		free(text);
	}
	return sum;
}

int main(void)
{
	int sum = 0;

	for (int i = 0; i < 2000; i++)
		sum += run_batch(1 + i % 6);
	printf("%d\n", sum);
	return 0;
}
