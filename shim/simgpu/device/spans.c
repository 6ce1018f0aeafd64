/*
 * spans.c - see spans.h.
 */
#include "simgpu/device/spans.h"

#include <stddef.h>

static uint64_t largest_of(const struct span *span)
{
	return span ? span->largest : 0;
}

static void update_largest(struct span *span)
{
	uint64_t largest = span->size;

	if (largest_of(span->left) > largest)
		largest = span->left->largest;
	if (largest_of(span->right) > largest)
		largest = span->right->largest;
	span->largest = largest;
}

/* Splits the tree into spans that start below `start` and the rest. */
static void split(struct span *tree, uint64_t start, struct span **below, struct span **rest)
{
	if (!tree) {
		*below = *rest = NULL;
	} else if (tree->start < start) {
		split(tree->right, start, &tree->right, rest);
		*below = tree;
		update_largest(tree);
	} else {
		split(tree->left, start, below, &tree->left);
		*rest = tree;
		update_largest(tree);
	}
}

static struct span *join(struct span *low, struct span *high)
{
	if (!low || !high)
		return low ? low : high;
	if (low->priority > high->priority) {
		low->right = join(low->right, high);
		update_largest(low);
		return low;
	}
	high->left = join(low, high->left);
	update_largest(high);
	return high;
}

void spans_insert(struct spans *spans, struct span *span)
{
	struct span *below, *rest;

	spans->random = spans->random * 1664525u + 1013904223u;
	span->priority = spans->random ^ spans->random >> 15;
	span->left = span->right = NULL;
	update_largest(span);
	split(spans->root, span->start, &below, &rest);
	spans->root = join(join(below, span), rest);
}

static struct span *remove_from(struct span *tree, struct span *span)
{
	if (tree == span)
		return join(span->left, span->right);
	if (span->start < tree->start)
		tree->left = remove_from(tree->left, span);
	else
		tree->right = remove_from(tree->right, span);
	update_largest(tree);
	return tree;
}

void spans_remove(struct spans *spans, struct span *span)
{
	spans->root = remove_from(spans->root, span);
}

struct span *spans_find_before(const struct spans *spans, uint64_t address)
{
	struct span *best = NULL;

	for (struct span *at = spans->root; at;) {
		if (at->start < address) {
			best = at;
			at = at->right;
		} else {
			at = at->left;
		}
	}
	return best;
}

struct span *spans_find_from(const struct spans *spans, uint64_t address)
{
	struct span *best = NULL;

	for (struct span *at = spans->root; at;) {
		if (at->start >= address) {
			best = at;
			at = at->left;
		} else {
			at = at->right;
		}
	}
	return best;
}

struct span *spans_find(const struct spans *spans, uint64_t address)
{
	struct span *span = address == UINT64_MAX ? NULL : spans_find_before(spans, address + 1);

	return span && address - span->start < span->size ? span : NULL;
}

struct span *spans_first_fit(const struct spans *spans, uint64_t size)
{
	struct span *at = spans->root;

	if (largest_of(at) < size)
		return NULL;
	for (;;) {
		if (largest_of(at->left) >= size)
			at = at->left;
		else if (at->size >= size)
			return at;
		else
			at = at->right;
	}
}
