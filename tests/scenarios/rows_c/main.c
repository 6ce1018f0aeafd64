/* Serves small requests for a while; then one asks for everything at once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SCALE
#define SCALE 1
#endif

__attribute__((noinline)) static char *load_rows(size_t rows)
{
	char *all = malloc(rows * 1000);

	if (all)
		memset(all, 1, rows < 2000 ? rows * 1000 : 1);
	return all;
}

int main(void)
{
	char *model[20];

	for (int i = 0; i < 20; i++) {
		model[i] = malloc(1000000);
		memset(model[i], i, 1000000);
	}
	for (int i = 0; i < 2000; i++) {
		char *rows = load_rows((size_t)(500 + i % 300));

		if (!rows)
			return 2;
		free(rows);
	}
	for (int i = 0; i < 3; i++) {
		char *rows = load_rows(2000000ul * SCALE);

		if (!rows) {
			fputs("out of memory\n", stderr);
			return 1;
		}
		free(rows);
	}
	return 0;
}
