/* Messages come and go, a little longer each round; the records of them are taken before, in one
 * piece, so that what is free is one piece too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SCALE
#define SCALE 1
#endif

#define MESSAGES (600 * SCALE)
#define ROUNDS 50

struct record {
	unsigned number, round;
};

static __attribute__((noinline)) char *receive(unsigned bytes)
{
	char *message = malloc(bytes);

	if (!message) {
		fputs("out of memory\n", stderr);
		exit(1);
	}
	memset(message, 1, bytes);
	return message;
}

int main(void)
{
	static char *messages[MESSAGES];
	struct record *records = calloc(MESSAGES * ROUNDS, sizeof(*records));

	if (!records)
		return 1;
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < MESSAGES; i++) {
			messages[i] = receive(16000 + round * 500);
			records[round * MESSAGES + i] = (struct record){i, round};
		}
		for (unsigned i = 0; i < MESSAGES; i++)
			free(messages[i]);
	}
	return records[5].number != 5;
}
