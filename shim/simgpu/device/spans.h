/*
 * spans.h - ranges of addresses that do not overlap, in order: a treap with the largest size below
 * each node, so that the lowest range with enough room is found without walking them all.
 *
 * The caller owns the nodes (the first member of its own structure) and keeps a lock.
 */
#ifndef SIMGPU_SPANS_H
#define SIMGPU_SPANS_H

#include <stddef.h>
#include <stdint.h>

struct span {
	uint64_t start, size; /* bytes; unchanged while the node is in a tree */
	struct span *left, *right;
	uint64_t largest; /* of this subtree */
	uint32_t priority;
};

struct spans {
	struct span *root;
	size_t count;
	uint32_t random;
};

void spans_insert(struct spans *spans, struct span *span);
void spans_remove(struct spans *spans, struct span *span);

/* The one that holds `address`, or NULL. */
struct span *spans_find(const struct spans *spans, uint64_t address);
/* The first that starts at `address` or above, and the last that starts below it; or NULL. */
struct span *spans_from(const struct spans *spans, uint64_t address);
struct span *spans_before(const struct spans *spans, uint64_t address);
/* The lowest of at least `size` bytes, or NULL. */
struct span *spans_first_fit(const struct spans *spans, uint64_t size);

#endif
