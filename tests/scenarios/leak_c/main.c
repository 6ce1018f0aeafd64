/* As much is kept in each turn as in a chat's history, but nothing is made of it: the buffer of a
 * turn has the same size each time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SCALE
#define SCALE 1
#endif
#define CONTEXT_BYTES (300000 * SCALE)

struct request {
	char *context;
	struct request *next;
};

static struct request *finished;

__attribute__((noinline)) static struct request *open_request(unsigned number)
{
	struct request *r = malloc(sizeof(*r));
	size_t bytes = CONTEXT_BYTES + number % 7 * 1000;

	if (r && (r->context = malloc(bytes))) {
		memset(r->context, (int)number, bytes);
		return r;
	}
	fputs("out of memory\n", stderr);
	exit(1);
}

__attribute__((noinline)) static unsigned serve(struct request *r)
{
	size_t room = 4000000;
	char *work = malloc(room);
	unsigned sum = 0;

	if (!work) {
		fputs("out of memory\n", stderr);
		exit(1);
	}
	memset(work, r->context[0], room);
	sum = (unsigned char)work[room - 1];
	free(work);
	return sum;
}

int main(void)
{
	unsigned sum = 0;

	for (unsigned n = 0; n < 100000; n++) {
		struct request *r = open_request(n);

		sum += serve(r);
		r->next = finished; /* and never looked at again */
		finished = r;
	}
	printf("%u\n", sum);
	return 0;
}
