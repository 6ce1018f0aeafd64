/*
 * spans.h - an ordered set of address ranges that do not overlap: a treap whose nodes hold the
 * largest size in their subtree, so that a first fit takes logarithmic time.
 *
 * The caller owns the nodes (the first member of its own structure) and holds a lock.
 */
#ifndef SIMGPU_SPANS_H
#define SIMGPU_SPANS_H

#include <stdint.h>

struct span {
	uint64_t start, size; /* bytes; unchanged while the node is in a tree */
	struct span *left, *right;
	uint64_t largest; /* size in this subtree */
	uint32_t priority;
};

struct spans {
	struct span *root;
	uint32_t random;
};

void spans_insert(struct spans *spans, struct span *span);
void spans_remove(struct spans *spans, struct span *span);

/* Returns the span that contains `address`, or NULL. */
struct span *spans_find(const struct spans *spans, uint64_t address);
/* Return the first span that starts at `address` or above, or the last that starts below; or NULL.
 */
struct span *spans_find_from(const struct spans *spans, uint64_t address);
struct span *spans_find_before(const struct spans *spans, uint64_t address);
/* Returns the lowest span of at least `size` bytes, or NULL. */
struct span *spans_first_fit(const struct spans *spans, uint64_t size);

#endif
