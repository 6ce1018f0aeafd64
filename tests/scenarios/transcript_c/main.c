/* One transcript that is appended to for ever, in place. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SCALE
#define SCALE 1
#endif

static char *transcript;
static size_t length;

__attribute__((noinline)) static void append_text(const char *text, size_t bytes)
{
	char *grown = realloc(transcript, length + bytes);

	if (!grown) {
		fputs("out of memory\n", stderr);
		abort();
	}
	memcpy(grown + length, text, bytes);
	transcript = grown;
	length += bytes;
}

int main(void)
{
	static char text[150000 * SCALE];

	for (int i = 0; i < 1000000; i++) {
		char *tokens = malloc(20000);

		memset(text, 'a' + i % 26, sizeof(text));
		memset(tokens, i, 20000);
		append_text(text, sizeof(text));
		free(tokens);
	}
	return 0;
}
