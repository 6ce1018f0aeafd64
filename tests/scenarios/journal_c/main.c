/* A workflow engine: after each step the whole state, which grows a little, is copied into the
 * journal, and the journal is never cut. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SCALE
#define SCALE 1
#endif

#define STATE_BYTES (200000 * SCALE)

struct snapshot {
	unsigned step;
	size_t bytes;
	char *state;
	struct snapshot *before;
};

static struct snapshot *journal;

static __attribute__((noinline)) int checkpoint(unsigned step, const char *state, size_t bytes)
{
	struct snapshot *s = malloc(sizeof(*s));

	if (!s || !(s->state = malloc(bytes)))
		return -1;
	memcpy(s->state, state, bytes);
	s->step = step;
	s->bytes = bytes;
	s->before = journal;
	journal = s;
	return 0;
}

static __attribute__((noinline)) char *run_step(unsigned step, char *state, size_t *bytes)
{
	size_t more = 500 * SCALE;
	char *grown = realloc(state, *bytes + more);

	if (!grown)
		return NULL;
	memset(grown + *bytes, (int)step, more);
	*bytes += more;
	return grown;
}

int main(void)
{
	size_t bytes = STATE_BYTES;
	char *state = calloc(1, bytes);

	for (unsigned step = 0; state && step < 20000; step++) {
		state = run_step(step, state, &bytes);
		if (!state || checkpoint(step, state, bytes)) {
			fputs("out of memory\n", stderr);
			return 1;
		}
	}
	return 0;
}
