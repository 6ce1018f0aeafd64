/* Small records by the hundred thousand, found through a table of pointers that doubles. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SCALE
#define SCALE 1
#endif

struct record {
	unsigned long key;
	char value[40 * SCALE];
};

static struct record **table;
static size_t used, room;

__attribute__((noinline)) static void add_record(unsigned long key)
{
	struct record *r = malloc(sizeof(*r));

	if (!r)
		goto out;
	r->key = key;
	memset(r->value, (int)key, sizeof(r->value));
	if (used == room) {
		size_t more = room ? room * 2 : 16;
		struct record **grown = realloc(table, more * sizeof(*grown));

		if (!grown)
			goto out;
		table = grown;
		room = more;
	}
	table[used++] = r;
	return;
out:
	fputs("out of memory\n", stderr);
	exit(1);
}

__attribute__((noinline)) static unsigned handle(unsigned long key)
{
	char *reply = malloc(3000);
	unsigned length;

	if (!reply)
		exit(1);
	add_record(key);
	length = (unsigned)snprintf(reply, 3000, "%lu", key);
	free(reply);
	return length;
}

int main(void)
{
	unsigned long sum = 0;

	for (unsigned long key = 0; key < 100000000; key++)
		sum += handle(key);
	printf("%lu\n", sum);
	return 0;
}
