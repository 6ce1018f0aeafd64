/*
 * sort.h - many items by a number: addresses, times. What has few, or another order, uses qsort().
 */
#ifndef ANALYZER_UTIL_SORT_H
#define ANALYZER_UTIL_SORT_H

#include <stddef.h>
#include <stdint.h>

struct sort_item {
	uint64_t key;
	const void *value;
};

/* Ascending; those of equal keys in any order. Takes no memory, where qsort() takes as much again.
 */
void sort_items(struct sort_item *items, size_t count);

#endif
