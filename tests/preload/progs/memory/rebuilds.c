/*
 * rebuilds.c - a server that makes a buffer anew at each turn and releases the last one, while
 * many small blocks come and go.
 *
 *   rebuilds TURNS FIRST MORE    the buffer has FIRST bytes, and MORE at each turn
 *
 * The process may have ROOM bytes more than at its start. After TURNS, or when a buffer is
 * refused, it asks for more than that at once, is refused, and exits with 3.
 */
#include <stdlib.h>
#include <string.h>

#include "../room.h"

#define LIVE 32
#define CHATTER 200

static size_t room;

static __attribute__((noinline)) char *compose(size_t size)
{
	char *p = malloc(size);

	if (p)
		memset(p, 1, 4096);
	return p;
}

static __attribute__((noinline)) void chatter(void *live[LIVE], long turn)
{
	for (long n = turn * CHATTER; n < (turn + 1) * CHATTER; n++) {
		unsigned slot = (unsigned)(n * 7 % LIVE);

		free(live[slot]);
		live[slot] = malloc(16 + (size_t)(n * 31 % 1000));
	}
}

static __attribute__((noinline)) void *ask(void)
{
	return malloc(room);
}

int main(int argc, char **argv)
{
	long turns = atol(argv[1]);
	size_t first = (size_t)atol(argv[2]), more = (size_t)atol(argv[3]);
	void *live[LIVE] = {NULL};
	char *buffer = NULL;

	if (argc < 4 || !getenv("ROOM"))
		return 2;
	room = strtoul(getenv("ROOM"), NULL, 10);
	limit_room(room);
	for (long turn = 0; turn < turns; turn++) {
		char *next = compose(first + (size_t)turn * more);

		if (!next)
			return 3;
		free(buffer);
		buffer = next;
		chatter(live, turn);
	}
	return ask() ? 0 : 3;
}
