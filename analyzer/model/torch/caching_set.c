/*
 * caching_set.c - see caching_set.h. The treap's priorities are hashes of addresses, seeded by the
 * process: no trace can make it slow, and no output shows its shape.
 */
#include "model/torch/caching_set.h"

#include "util/map.h"

struct position {
	uint64_t stream, size, address;
};

static bool before(const struct caching_set *s, const struct position *a, const struct position *b)
{
	if (a->stream != b->stream)
		return a->stream < b->stream;
	if (s->by_size && a->size != b->size)
		return a->size < b->size;
	return a->address < b->address;
}

static struct position position_of(const struct caching_block *b)
{
	return (struct position){b->stream, b->size, b->address};
}

static bool block_before(
    const struct caching_set *s, const struct caching_block *b, const struct position *at)
{
	struct position position = position_of(b);

	return before(s, &position, at);
}

void caching_set_insert(struct caching_set *s, struct caching_block *b)
{
	struct position position = position_of(b);
	struct caching_block **at = &s->root, **left = &b->left, **right = &b->right, *rest;

	b->priority = (uint32_t)(map_hash(b->address) >> 32);
	while (*at && (*at)->priority >= b->priority)
		at = block_before(s, *at, &position) ? &(*at)->right : &(*at)->left;
	for (rest = *at; rest;) {
		if (block_before(s, rest, &position)) {
			*left = rest;
			left = &rest->right;
			rest = rest->right;
		} else {
			*right = rest;
			right = &rest->left;
			rest = rest->left;
		}
	}
	*left = *right = NULL;
	*at = b;
}

void caching_set_remove(struct caching_set *s, struct caching_block *b)
{
	struct position position = position_of(b);
	struct caching_block **at = &s->root, *left = b->left, *right = b->right;

	while (*at != b)
		at = block_before(s, *at, &position) ? &(*at)->right : &(*at)->left;
	while (left && right) {
		if (left->priority >= right->priority) {
			*at = left;
			at = &left->right;
			left = left->right;
		} else {
			*at = right;
			at = &right->left;
			right = right->left;
		}
	}
	*at = left ? left : right;
}

struct caching_block *caching_set_at(
    const struct caching_set *s, uint64_t stream, uint64_t size, uint64_t address)
{
	struct position position = {stream, size, address};
	struct caching_block *found = NULL;

	for (struct caching_block *at = s->root; at;) {
		if (block_before(s, at, &position)) {
			at = at->right;
		} else {
			found = at;
			at = at->left;
		}
	}
	return found;
}

struct caching_block *caching_set_before(
    const struct caching_set *s, uint64_t stream, uint64_t size, uint64_t address)
{
	struct position position = {stream, size, address};
	struct caching_block *found = NULL;

	for (struct caching_block *at = s->root; at;) {
		if (block_before(s, at, &position)) {
			found = at;
			at = at->right;
		} else {
			at = at->left;
		}
	}
	return found;
}

/* No two blocks of a set start at the same address. */
struct caching_block *caching_set_next(const struct caching_set *s, const struct caching_block *b)
{
	return caching_set_at(s, b->stream, b->size, b->address + 1);
}

struct caching_block *caching_set_prev(const struct caching_set *s, const struct caching_block *b)
{
	return caching_set_before(s, b->stream, b->size, b->address);
}
