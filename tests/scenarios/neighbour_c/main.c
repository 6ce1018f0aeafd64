/* A server that does the same all day, in a container in which somebody else holds most of the
 * memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef SCALE
#define SCALE 1
#endif

#define TABLE_BYTES (24000000 * SCALE)
#define REQUEST_BYTES (6000000 * SCALE)

static __attribute__((noinline)) int serve(const char *table, unsigned number)
{
	char *work = malloc(REQUEST_BYTES);
	int sum;

	if (!work)
		exit(1);
	memset(work, table[number], REQUEST_BYTES);
	sum = work[number];
	free(work);
	usleep(4000);
	return sum;
}

int main(void)
{
	char *table = malloc(TABLE_BYTES);
	int sum = 0;

	if (!table)
		return 1;
	memset(table, 1, TABLE_BYTES);
	for (unsigned n = 0; n < 1200; n++)
		sum += serve(table, n);
	printf("%d\n", sum);
	return 0;
}
