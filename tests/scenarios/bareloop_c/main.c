/* Whoever tries a tool first writes this: each event is kept, in blocks of many sizes, and nothing
 * is ever released. The list of them is enlarged by one entry at a time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SCALE
#define SCALE 1
#endif

static char **events;
static size_t count;

__attribute__((noinline)) static void record_event(unsigned long number)
{
	size_t size = (200 + number * 7919 % 3000) * SCALE;
	char **more = realloc(events, (count + 1) * sizeof(*more));
	char *event;

	if (!more) {
		perror("realloc");
		exit(1);
	}
	events = more;
	event = malloc(size);
	if (!event) {
		perror("malloc");
		exit(1);
	}
	memset(event, (int)number, size);
	events[count++] = event;
}

int main(void)
{
	for (unsigned long number = 0;; number++)
		record_event(number);
}
