/* A service that answers the same all day beside its table; at night a thread is to write a report,
 * and the limit has no room for a stack. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_BYTES 24000000

static __attribute__((noinline)) int answer(const char *table, int number)
{
	size_t size = (size_t)(200000 + number % 50 * 30000);
	char *work = malloc(size);
	int sum;

	if (!work)
		exit(1);
	memset(work, table[number], size);
	sum = work[number];
	free(work);
	return sum;
}

static void *report(void *table)
{
	return (void *)(size_t)answer(table, 7);
}

int main(void)
{
	char *table = malloc(TABLE_BYTES);
	pthread_t night;
	int sum = 0;

	if (!table)
		return 1;
	memset(table, 1, TABLE_BYTES);
	for (int number = 0; number < 2000; number++)
		sum += answer(table, number);
	if (pthread_create(&night, NULL, report, table)) {
		fputs("no thread\n", stderr);
		return 1;
	}
	pthread_join(night, NULL);
	printf("%d\n", sum);
	return 0;
}
