/* Serves the same all day; then its configuration is read again, and with it a limit that is too
 * low. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef SCALE
#define SCALE 1
#endif

#ifndef LIMIT_MIB
#define LIMIT_MIB (60 * SCALE)
#endif
#define WORK_BYTES (40000000 * SCALE)

static char *tables[8];

static __attribute__((noinline)) int serve(unsigned number)
{
	char *work = malloc(WORK_BYTES - number % 5 * 10000);
	int sum;

	if (!work) {
		fputs("out of memory\n", stderr);
		exit(1);
	}
	memset(work, (int)number, 4000000);
	sum = work[1000] + tables[number % 8][0];
	free(work);
	return sum;
}

static void read_configuration(unsigned long limit)
{
	struct rlimit r = {limit, limit};

	setrlimit(RLIMIT_AS, &r);
}

int main(void)
{
	int sum = 0;

	for (int i = 0; i < 8; i++) {
		tables[i] = malloc(4000000 * SCALE);
		if (!tables[i])
			return 1;
		memset(tables[i], i, 4000000 * SCALE);
	}
	for (unsigned n = 0; n < 400; n++)
		sum += serve(n);
	read_configuration(LIMIT_MIB << 20ul);
	for (unsigned n = 0; n < 400; n++)
		sum += serve(n);
	printf("%d\n", sum);
	return 0;
}
