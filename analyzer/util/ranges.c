/* ranges.c - a treap: random priorities keep its depth logarithmic. See ranges.h. */
#include "util/ranges.h"

#include <errno.h>
#include <stdlib.h>

struct range_node {
	struct range range;
	uint64_t priority;
	struct range_node *left, *right;
};

void ranges_init(struct ranges *r)
{
	r->root = NULL;
	r->count = 0;
	r->seed = 0x9e3779b97f4a7c15u;
}

static void free_nodes(struct range_node *n)
{
	/* A loop for the right spine, recursion for the left: its depth stays logarithmic. */
	while (n) {
		struct range_node *right = n->right;
		free_nodes(n->left);
		free(n);
		n = right;
	}
}

void ranges_fini(struct ranges *r)
{
	free_nodes(r->root);
	ranges_init(r);
}

static uint64_t next_random(struct ranges *r)
{
	r->seed ^= r->seed << 13;
	r->seed ^= r->seed >> 7;
	r->seed ^= r->seed << 17;
	return r->seed;
}

/* Split: nodes that start below `at` go to *low, the others to *high. */
static void split(
    struct range_node *n, uint64_t at, struct range_node **low, struct range_node **high)
{
	while (n) {
		if (n->range.start < at) {
			*low = n;
			low = &n->right;
			n = n->right;
		} else {
			*high = n;
			high = &n->left;
			n = n->left;
		}
	}
	*low = NULL;
	*high = NULL;
}

static struct range_node *join(struct range_node *low, struct range_node *high)
{
	struct range_node *root = NULL, **link = &root;

	while (low && high) {
		if (low->priority > high->priority) {
			*link = low;
			link = &low->right;
			low = low->right;
		} else {
			*link = high;
			link = &high->left;
			high = high->left;
		}
	}
	*link = low ? low : high;
	return root;
}

static void insert(struct ranges *r, struct range_node *n)
{
	struct range_node *low, *high;

	n->left = n->right = NULL;
	split(r->root, n->range.start, &low, &high);
	r->root = join(join(low, n), high);
	r->count++;
}

int ranges_add(struct ranges *r, const struct range *range)
{
	struct range_node *n;

	if (range->start >= range->end)
		return 0;
	n = malloc(sizeof(*n));
	if (!n)
		return -ENOMEM;
	n->range = *range;
	n->priority = next_random(r);
	insert(r, n);
	return 0;
}

/* Find the last range that starts below `at`, or NULL. */
static struct range_node *before(struct range_node *n, uint64_t at)
{
	struct range_node *found = NULL;

	while (n) {
		if (n->range.start < at) {
			found = n;
			n = n->right;
		} else {
			n = n->left;
		}
	}
	return found;
}

static void report_removed(struct range_node *n, range_cut_fn fn, void *arg)
{
	while (n) {
		struct range_node *right = n->right;
		report_removed(n->left, fn, arg);
		fn(arg, &n->range, 1, 0);
		free(n);
		n = right;
	}
}

static size_t count_nodes(const struct range_node *n)
{
	size_t count = 0;

	for (; n; n = n->right)
		count += 1 + count_nodes(n->left);
	return count;
}

static void tell_nobody(void *arg, const struct range *piece, int whole, int split)
{
}

int ranges_cut(struct ranges *r, uint64_t start, uint64_t end, range_cut_fn fn, void *arg)
{
	struct range_node *low, *mid, *high, *left, *last;
	struct range piece;

	if (start >= end)
		return 0;
	if (!fn)
		fn = tell_nobody;
	left = before(r->root, start);
	if (left && left->range.end > start) {
		uint64_t old_end = left->range.end;

		piece = left->range;
		piece.start = start;
		if (old_end > end) {
			struct range rest = left->range;
			int rc;

			piece.end = end;
			rest.start = end;
			rc = ranges_add(r, &rest);
			if (rc)
				return rc;
		}
		left->range.end = start;
		fn(arg, &piece, 0, old_end > end);
		if (old_end >= end)
			return 0;
	}
	/* The last range may reach beyond the end: keep its tail. */
	last = before(r->root, end);
	if (last && last->range.start >= start && last->range.end > end) {
		uint64_t from = last->range.start;
		struct range_node *alone;

		piece = last->range;
		piece.end = end;
		split(r->root, from, &low, &mid);
		split(mid, from + 1, &alone, &high);
		r->root = join(low, high);
		r->count--;
		alone->range.start = end;
		insert(r, alone);
		fn(arg, &piece, 0, 0);
	}
	split(r->root, start, &low, &mid);
	split(mid, end, &mid, &high);
	r->root = join(low, high);
	r->count -= count_nodes(mid);
	report_removed(mid, fn, arg);
	return 0;
}

static void each(const struct range_node *n, range_fn fn, void *arg)
{
	for (; n; n = n->right) {
		each(n->left, fn, arg);
		fn(arg, &n->range);
	}
}

void ranges_each(const struct ranges *r, range_fn fn, void *arg)
{
	each(r->root, fn, arg);
}

const struct range *ranges_find(const struct ranges *r, uint64_t address)
{
	const struct range_node *n = r->root, *found = NULL;

	while (n) {
		if (n->range.start <= address) {
			found = n;
			n = n->right;
		} else {
			n = n->left;
		}
	}
	return found && found->range.end > address ? &found->range : NULL;
}

static void within(const struct range_node *n, uint64_t start, uint64_t end, range_fn fn, void *arg)
{
	/* Ranges do not overlap, so they also end in order of their starts. */
	while (n) {
		if (n->range.end <= start) {
			n = n->right;
		} else if (n->range.start >= end) {
			n = n->left;
		} else {
			within(n->left, start, end, fn, arg);
			fn(arg, &n->range);
			n = n->right;
		}
	}
}

void ranges_within(const struct ranges *r, uint64_t start, uint64_t end, range_fn fn, void *arg)
{
	within(r->root, start, end, fn, arg);
}
