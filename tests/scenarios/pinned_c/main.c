/* Messages are received into buffers of the largest size and shrunk to what they hold, which is
 * little, when the next one is on its way: the rest of each buffer is free, but lies between two
 * messages, and no further buffer fits in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SCALE
#define SCALE 1
#endif

#define LARGEST (48000 * SCALE)

struct message {
	struct message *before;
	char text[];
};

static struct message *inbox;

/* From the wire: the whole buffer is written to. */
static __attribute__((noinline)) struct message *receive(unsigned number)
{
	struct message *m = malloc(sizeof(*m) + LARGEST);

	if (!m) {
		fputs("out of memory\n", stderr);
		exit(1);
	}
	memset(m->text, (int)number, LARGEST);
	return m;
}

static __attribute__((noinline)) struct message *keep(struct message *m, size_t bytes)
{
	struct message *less = realloc(m, sizeof(*m) + bytes);

	return less ? less : m;
}

int main(void)
{
	struct message *last = receive(0);

	for (unsigned number = 1; number < 16000; number++) {
		struct message *next = receive(number), *m = keep(last, 200 + number % 100);

		m->before = inbox;
		inbox = m;
		last = next;
	}
	return 0;
}
