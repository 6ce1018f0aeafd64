/* A job that appends to its state, and keeps a copy of it after each step. */
#include <stdlib.h>
#include <string.h>

#ifndef SCALE
#define SCALE 1
#endif

struct snapshot {
	struct snapshot *before;
	size_t size;
	char data[];
};

static struct snapshot *latest;
static char *state;
static size_t used;

__attribute__((noinline)) static void advance(int step)
{
	size_t more = (size_t)(3000 + step * 37 % 2000) * SCALE;

	state = realloc(state, used + more);
	if (!state)
		abort();
	memset(state + used, step, more);
	used += more;
}

__attribute__((noinline)) static void save(void)
{
	struct snapshot *s = malloc(sizeof(*s) + used);

	if (!s)
		abort();
	s->size = used;
	memcpy(s->data, state, used);
	s->before = latest;
	latest = s;
}

int main(void)
{
	for (int step = 0; step < 10000000; step++) {
		advance(step);
		save();
	}
	return 0;
}
