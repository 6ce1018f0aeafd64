/*
 * sort.h - sorts many items by a 64-bit key, such as an address or a time.
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

#endif
