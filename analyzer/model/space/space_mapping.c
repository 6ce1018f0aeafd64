/*
 * space_mapping.c - a handle's memory, seen at addresses. It lives as long as it has a reference or
 * a mapping.
 */
#include <errno.h>
#include <stdlib.h>

#include "model/space/space_parts.h"

#define UNMAPPED_MAX 4096u /* pieces that can be restored */

static bool end_of(const struct event *e, uint64_t *end)
{
	if (!e->size || e->size > SPACE_SIZE_MAX || e->address > UINT64_MAX - e->size)
		return false;
	*end = e->address + e->size;
	return true;
}

static int add_mapping(struct spaces *s, uint32_t index, const struct range *r)
{
	struct space_block *b = spaces_block(s, index);
	int rc = ranges_add(&s->layout, r);

	if (rc)
		return rc;
	s->list[b->space]->mapped_handles += !b->mapped;
	b->mapped += r->end - r->start;
	return 0;
}

static void expect_unmap(void *arg, const struct range *r)
{
	if (r->kind == LAYOUT_MAPPING)
		space_late_expect(arg, r->start, r->end, LATE_MAPPING);
}

int space_on_map(struct spaces *s, const struct event *e)
{
	uint32_t index = space_block_at(s, NULL, e->u.space.handle, true);
	struct range r = {.start = e->address,
	    .serial = index,
	    .birth_ns = e->time_ns,
	    .stack = e->stack,
	    .kind = LAYOUT_MAPPING};
	int rc;

	if (index == SPACE_NONE) {
		s->unmatched++;
		return 0;
	}
	if (!end_of(e, &r.end))
		return 0;
	/* The driver maps nothing over something, so anything that lies there is gone. */
	ranges_within(&s->layout, r.start, r.end, expect_unmap, s);
	rc = space_clear_range(s, r.start, r.end);
	if (rc)
		return rc;
	/* This very mapping may have kept it. */
	if (space_block_at(s, NULL, e->u.space.handle, true) != index)
		return 0;
	return add_mapping(s, index, &r);
}

static void keep_piece(void *arg, const struct range *r)
{
	struct spaces *s = arg;
	uint64_t start = r->start > s->unmapped_start ? r->start : s->unmapped_start;
	uint64_t end = r->end < s->unmapped_end ? r->end : s->unmapped_end;
	struct space_unmapped *to;

	if (r->kind != LAYOUT_MAPPING || start >= end || s->unmapped_count == UNMAPPED_MAX)
		return;
	if (s->unmapped_count == s->unmapped_room) {
		size_t room = s->unmapped_room ? s->unmapped_room * 2 : 64;
		struct space_unmapped *grown = realloc(s->unmapped, room * sizeof(*grown));

		if (!grown)
			return; /* then it cannot be restored */
		s->unmapped = grown;
		s->unmapped_room = room;
	}
	to = &s->unmapped[s->unmapped_count++];
	to->piece = *r;
	to->piece.start = start;
	to->piece.end = end;
	to->copy = *spaces_block(s, (uint32_t)r->serial);
}

int space_on_unmap(struct spaces *s, const struct event *e)
{
	uint64_t end;

	if (!end_of(e, &end) || space_late_take(s, e, LATE_MAPPING))
		return 0;
	s->unmapped_count = 0;
	s->unmapped_start = e->address;
	s->unmapped_end = end;
	s->unmapped_thread = e->thread;
	ranges_within(&s->layout, e->address, end, keep_piece, s);
	return space_clear_range(s, e->address, end);
}

int space_on_ununmap(struct spaces *s, const struct event *e)
{
	int rc = 0;

	if (e->address != s->unmapped_start || e->thread != s->unmapped_thread)
		return 0;
	for (size_t i = 0; i < s->unmapped_count && !rc; i++) {
		struct space_unmapped *u = &s->unmapped[i];
		struct space_block *b = spaces_block(s, (uint32_t)u->piece.serial);
		uint32_t index = (uint32_t)u->piece.serial;

		rc = space_clear_range(s, u->piece.start, u->piece.end);
		if (rc)
			break;
		if (!b->used || b->block.serial != u->copy.block.serial) {
			/* The unmapping had released the memory; later pieces belong to it, too. */
			u->copy.references = 0;
			u->copy.mapped = 0;
			rc = space_block_new(s, &u->copy, true, &index);
			for (size_t k = i; k < s->unmapped_count; k++)
				if (s->unmapped[k].copy.block.serial == u->copy.block.serial)
					s->unmapped[k].piece.serial = index;
			if (rc)
				break;
		}
		u->piece.serial = index;
		rc = add_mapping(s, index, &u->piece);
	}
	s->unmapped_count = 0;
	return rc;
}
