/* A leak behind a helper through which everything is allocated. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SCALE
#define SCALE 1
#endif

struct job {
	char *input;
	struct job *next;
};

static struct job *done;

__attribute__((noinline)) static void *obtain(size_t bytes)
{
	void *p = malloc(bytes);

	if (!p) {
		fputs("out of memory\n", stderr);
		exit(1);
	}
	memset(p, 1, bytes);
	return p;
}

__attribute__((noinline)) static struct job *accept_job(unsigned n)
{
	struct job *j = obtain(sizeof(*j));

	j->input = obtain(40000 * SCALE + n % 100);
	return j;
}

__attribute__((noinline)) static unsigned render(const struct job *j)
{
	unsigned char *page = obtain(1500000), sum = page[j->input[0]];

	free(page);
	return sum;
}

int main(void)
{
	unsigned sum = 0;

	for (unsigned n = 0; n < 1000000; n++) {
		struct job *j = accept_job(n);

		sum += render(j);
		j->next = done;
		done = j;
	}
	return (int)(sum & 1);
}
