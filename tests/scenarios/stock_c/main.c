/* A service whose allocator takes address space in stock, a gigabyte if it can have it, else a
 * little at a time: that it cannot have it does no harm, and all requests are served. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef SCALE
#define SCALE 1
#endif

#define STOCK_BYTES (1ul << 30)
#define PIECE_BYTES (8ul << 20)

static struct {
	char *at;
	size_t left;
} stock;

static __attribute__((noinline)) void *map(size_t size)
{
	void *p = mmap(
	    NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static __attribute__((noinline)) void *map_stock(void)
{
	return map(STOCK_BYTES);
}

static __attribute__((noinline)) void *map_piece(void)
{
	return map(PIECE_BYTES);
}

/* From the stock, which is filled up when it does not do. */
static __attribute__((noinline)) char *take(size_t size)
{
	char *p;

	if (stock.left < size) {
		stock.at = map_stock();
		stock.left = STOCK_BYTES;
		if (!stock.at) {
			stock.at = map_piece();
			stock.left = PIECE_BYTES;
		}
		if (!stock.at) {
			fputs("out of memory\n", stderr);
			exit(1);
		}
	}
	p = stock.at;
	stock.at += size;
	stock.left -= size;
	return p;
}

static __attribute__((noinline)) unsigned long answer(int number, char *table)
{
	size_t size = (size_t)(20000 + number % 50 * 4000) * SCALE;
	char *text = malloc(size);
	unsigned long sum = 0;

	if (!text) {
		fputs("out of memory\n", stderr);
		exit(1);
	}
	memset(text, number, size);
	for (size_t i = 0; i < size; i += 64)
		sum += (unsigned char)text[i] + (unsigned char)table[i % 100000];
	free(text);
	return sum;
}

int main(void)
{
	unsigned long sum = 0;
	char *table = take(200000);

	memset(table, 3, 200000);
	for (int number = 0; number < 4000; number++)
		sum += answer(number, table);
	printf("%lu\n", sum);
	return 0;
}
