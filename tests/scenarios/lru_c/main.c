/* A cache of thumbnails with a hash table and an order of use; the eviction was never written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SCALE
#define SCALE 1
#endif

#define BUCKETS 4096u
#define IMAGE_BYTES (60000 * SCALE)

struct entry {
	unsigned key;
	char *image;
	struct entry *next, *older;
};

static struct entry *buckets[BUCKETS], *newest;

static struct entry *cache_get(unsigned key)
{
	struct entry *e = buckets[key % BUCKETS];

	while (e && e->key != key)
		e = e->next;
	return e;
}

static __attribute__((noinline)) struct entry *cache_put(unsigned key)
{
	struct entry *e = malloc(sizeof(*e));

	if (!e || !(e->image = malloc(IMAGE_BYTES))) {
		fputs("out of memory\n", stderr);
		exit(1);
	}
	memset(e->image, (int)key, IMAGE_BYTES);
	e->key = key;
	e->next = buckets[key % BUCKETS];
	buckets[key % BUCKETS] = e;
	e->older = newest;
	newest = e;
	return e;
}

static __attribute__((noinline)) int show(unsigned key)
{
	struct entry *e = cache_get(key);
	char *out = malloc(IMAGE_BYTES);
	int first;

	if (!e)
		e = cache_put(key);
	if (!out)
		exit(1);
	memcpy(out, e->image, IMAGE_BYTES);
	first = out[0];
	free(out);
	return first;
}

int main(void)
{
	unsigned x = 1, sum = 0;

	for (unsigned n = 0; n < 200000; n++) {
		x = x * 1664525u + 1013904223u;
		/* Most ask for what is new, some for what was shown before. */
		sum += (unsigned)show(x >> 30 ? n / 4 : x % (n / 4 + 1));
	}
	printf("%u\n", sum);
	return 0;
}
