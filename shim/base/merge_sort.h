/*
 * merge_sort.h - sorts in the caller's memory; the C library's qsort may allocate.
 */
#ifndef SHIM_MERGE_SORT_H
#define SHIM_MERGE_SORT_H

#include <stddef.h>
#include <stdint.h>

struct sort_item {
	uint64_t key;
	uint64_t value;
};

/* Sort by key; equal keys keep their order. `scratch` has room for n items. */
static inline void merge_sort(struct sort_item *items, struct sort_item *scratch, size_t n)
{
	for (size_t width = 1; width < n; width *= 2) {
		for (size_t from = 0; from < n; from += 2 * width) {
			size_t middle = from + width < n ? from + width : n;
			size_t to = middle + width < n ? middle + width : n;
			size_t a = from, b = middle, out = from;

			while (a < middle && b < to)
				scratch[out++] =
				    items[b].key < items[a].key ? items[b++] : items[a++];
			while (a < middle)
				scratch[out++] = items[a++];
			while (b < to)
				scratch[out++] = items[b++];
		}
		for (size_t i = 0; i < n; i++)
			items[i] = scratch[i];
	}
}

#endif
