/*
 * sort.h - sorts many items by a 64-bit key, such as an address or a time, and finds one; finds a
 * median.
 */
#ifndef ANALYZER_UTIL_SORT_H
#define ANALYZER_UTIL_SORT_H

#include <stddef.h>
#include <stdint.h>

struct sort_item {
	uint64_t key;
	const void *value;
};

/* Sort in ascending order, in place and not stable; qsort() would take as much memory again. */
void sort_items(struct sort_item *items, size_t count);

/* How many items have at most that key: the first ones, as they are sorted by their key, a uint64_t
 * at the beginning of each item of `bytes` bytes. */
size_t sort_up_to(const void *items, size_t count, size_t bytes, uint64_t key);

/* Sort the values and return their median, the larger of the middle two; 0: there is none. */
uint64_t sort_median(uint64_t *values, size_t count);

#endif
