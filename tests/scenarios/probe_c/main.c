/* Asks for as much as it can get, halving until it is granted; that is no failure. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) static char *largest(size_t *size)
{
	char *p;

	while (!(p = malloc(*size)))
		*size /= 2;
	return p;
}

int main(void)
{
	size_t size = 1ul << 34;
	char *arena = largest(&size);

	for (int i = 0; i < 20000; i++) {
		char *work = malloc((size_t)(1000 + i % 9000));

		memset(work, i, 1000);
		free(work);
	}
	printf("%zu\n", size);
	free(arena);
	return 0;
}
