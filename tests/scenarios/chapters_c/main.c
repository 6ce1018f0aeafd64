/* Reads a book: each chapter with all that came before it, the state of every few words in a page
 * of its own. The pages are given back when the chapter is read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SCALE
#define SCALE 1
#endif
#define PAGE (48 << 10)

struct page {
	struct page *before;
	float state[];
};

static struct page *add_page(struct page *before)
{
	struct page *p = malloc(sizeof(*p) + PAGE * SCALE);

	if (!p) {
		fprintf(stderr, "no memory for a page\n");
		exit(3);
	}
	memset(p->state, 1, PAGE * SCALE);
	p->before = before;
	return p;
}

static float read_chapter(size_t words)
{
	struct page *pages = NULL;
	float sum = 0;

	for (size_t i = 0; i < words; i += 32)
		pages = add_page(pages);
	while (pages) {
		struct page *before = pages->before;

		sum += pages->state[7];
		free(pages);
		pages = before;
	}
	return sum;
}

int main(void)
{
	size_t words = 2000;
	unsigned r = 9;

	for (int chapter = 1; chapter <= 44; chapter++) {
		printf("%d %g\n", chapter, read_chapter(words));
		r = r * 1103515245 + 12345;
		words += words / 16 + (r >> 16) % (words / 8);
	}
	return 0;
}
