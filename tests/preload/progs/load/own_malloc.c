/* own_malloc.c - exports a malloc of its own, through which libc allocates. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
	char *line = NULL;

	for (int i = 0; i < 1000; i++) {
		char *s = strdup("a string that libc copies");
		free(s);
	}
	if (asprintf(&line, "%s", "served") < 0)
		return 1;
	puts(line);
	free(line);
	return 0;
}
