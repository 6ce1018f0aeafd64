/* sort.c - sorts in place by one byte of the keys after another, the highest first. See sort.h. */
#include "util/sort.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS 256u
#define FEW 32u /* so few are sorted by insertion */

static void insert_each(struct sort_item *items, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct sort_item moved = items[i];
		size_t at = i;

		for (; at && items[at - 1].key > moved.key; at--)
			items[at] = items[at - 1];
		items[at] = moved;
	}
}

/* Move each item to its bucket by the byte at `shift`; ends[b] receives the end of bucket b. */
static void distribute(struct sort_item *items, size_t count, unsigned shift, size_t *ends)
{
	size_t next[BUCKETS], sum = 0;

	for (unsigned b = 0; b < BUCKETS; b++)
		ends[b] = 0;
	for (size_t i = 0; i < count; i++)
		ends[items[i].key >> shift & (BUCKETS - 1)]++;
	for (unsigned b = 0; b < BUCKETS; b++) {
		next[b] = sum;
		sum += ends[b];
		ends[b] = sum;
	}
	for (unsigned b = 0; b < BUCKETS; b++) {
		while (next[b] < ends[b]) {
			struct sort_item *at = &items[next[b]];
			unsigned own = at->key >> shift & (BUCKETS - 1);

			if (own == b) {
				next[b]++;
			} else {
				struct sort_item other = items[next[own]];

				items[next[own]++] = *at;
				*at = other;
			}
		}
	}
}

/* All bytes above `shift` are equal, so the depth is the number of bytes in a key. */
static void sort_from(struct sort_item *items, size_t count, unsigned shift)
{
	size_t ends[BUCKETS], from = 0;

	if (count <= FEW) {
		insert_each(items, count);
		return;
	}
	distribute(items, count, shift, ends);
	for (unsigned b = 0; shift && b < BUCKETS; from = ends[b++])
		if (ends[b] - from > 1)
			sort_from(items + from, ends[b] - from, shift - 8);
}

void sort_items(struct sort_item *items, size_t count)
{
	uint64_t differ = 0;

	for (size_t i = 1; i < count; i++)
		differ |= items[i].key ^ items[0].key;
	if (differ)
		sort_from(items, count, (63 - (unsigned)__builtin_clzll(differ)) / 8 * 8);
}

size_t sort_up_to(const void *items, size_t count, size_t bytes, uint64_t key)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		uint64_t at;

		memcpy(&at, (const char *)items + middle * bytes, sizeof(at));
		if (at <= key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t sort_median(uint64_t *values, size_t count)
{
	qsort(values, count, sizeof(*values), by_value);
	return count ? values[count / 2] : 0;
}
