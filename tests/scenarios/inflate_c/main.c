/* Answers small compressed requests; one of them inflates to a thousand times its size. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SCALE
#define SCALE 1
#endif

/* Runs of a byte: count, value. The output doubles as it fills up. */
static __attribute__((noinline)) char *inflate(const unsigned *in, size_t runs, size_t *bytes)
{
	size_t room = 4096, used = 0;
	char *out = malloc(room);

	for (size_t i = 0; out && i < runs; i++) {
		while (used + in[2 * i] > room) {
			char *more = realloc(out, room *= 2);

			if (!more) {
				fputs("out of memory\n", stderr);
				exit(1);
			}
			out = more;
		}
		memset(out + used, (int)in[2 * i + 1], in[2 * i]);
		used += in[2 * i];
	}
	*bytes = used;
	return out;
}

static __attribute__((noinline)) unsigned answer(const unsigned *in, size_t runs)
{
	size_t bytes;
	char *text = inflate(in, runs, &bytes);
	unsigned sum = 0;

	for (size_t i = 0; text && i < bytes; i += 997)
		sum += (unsigned char)text[i];
	free(text);
	return sum;
}

int main(void)
{
	unsigned small[] = {4000, 'a', 300, 'b', 9000, 'c'}, bomb[400], sum = 0;

	for (int i = 0; i < 200; i++) {
		bomb[2 * i] = 5000000u * SCALE;
		bomb[2 * i + 1] = 'x';
	}
	for (int i = 0; i < 5000; i++)
		sum += answer(small, 3);
	sum += answer(bomb, 200);
	printf("%u\n", sum);
	return 0;
}
