/* alone [SECONDS]: as load, but on its one thread, which waits for nothing: there is nobody else to
 * ask. First it computes for so long and does not allocate. Runs until a file "stop" appears in its
 * directory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 0);
	double sum = 0;
	unsigned long n = 0;

	puts("ready");
	fflush(stdout);
	while (time(NULL) < end)
		;
	for (;;) {
		unsigned char *block = malloc(100 + n % 1000);

		memset(block, (int)(n & 255), 100);
		for (volatile int i = 0; i < 200; i++)
			;
		if (block[99] != (unsigned char)n || sum != 0.25 * (double)n)
			return 3;
		free(block);
		sum += 0.25;
		n++;
		if (n % 10000 == 0 && !access("stop", F_OK))
			break;
	}
	printf("right after %lu rounds\n", n);
	return 0;
}
