/*
 * space_blocks.c - the spaces' blocks: acquired, released, restored, released in bulk; and handles'
 * memory, mapped at addresses. An address or handle is live only once; contradictions are repaired
 * and counted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/space/space_parts.h"

#define CHUNK_BLOCKS 1024u
#define LATE_NS 100000u /* bound on the difference of two clocks */
#define UNMAPPED_MAX 4096u /* pieces that can be restored */

static bool has_own_table(const struct space *sp)
{
	return sp->kind == SPACE_TORCH || sp->kind == SPACE_VA || sp->kind == SPACE_OTHER;
}

static struct map *table_of(const struct spaces *s, const struct space *sp, bool handle)
{
	if (handle)
		return (struct map *)&s->handles;
	return (struct map *)(sp && has_own_table(sp) ? &sp->own : &s->addresses);
}

static bool is_handle(const struct space_block *b)
{
	return b->flags & TRACE_SPACE_HANDLE;
}

static bool is_laid_out(const struct spaces *s, const struct space_block *b)
{
	return !is_handle(b) && b->block.size && !has_own_table(s->list[b->space]);
}

/* Find the block that lives at that address or under that handle, or SPACE_NONE. */
static uint32_t block_at(
    const struct spaces *s, const struct space *sp, uint64_t address, bool handle)
{
	const uint64_t *found = map_find(table_of(s, sp, handle), address);

	return found ? (uint32_t)*found - 1 : SPACE_NONE;
}

static int new_record(struct spaces *s, uint32_t *index)
{
	if (s->spare) {
		*index = s->spare - 1;
		s->spare = spaces_block(s, *index)->next;
		return 0;
	}
	if (s->used / CHUNK_BLOCKS == s->chunks.count) {
		struct space_block *chunk = calloc(CHUNK_BLOCKS, sizeof(*chunk));

		if (!chunk || vec_push(&s->chunks, chunk)) {
			free(chunk);
			return -ENOMEM;
		}
	}
	*index = s->used++;
	return 0;
}

static void free_record(struct spaces *s, uint32_t index)
{
	struct space_block *b = spaces_block(s, index);

	memset(b, 0, sizeof(*b));
	b->next = s->spare;
	s->spare = index + 1;
}

static int link_context(struct spaces *s, uint32_t index)
{
	struct space_block *b = spaces_block(s, index);
	uint64_t *head = map_put(&s->list[b->space]->contexts, b->context);

	if (!head)
		return -ENOMEM;
	b->prev = 0;
	b->next = (uint32_t)*head;
	if (*head)
		spaces_block(s, (uint32_t)*head - 1)->prev = index + 1;
	*head = index + 1;
	return 0;
}

static void unlink_context(struct spaces *s, uint32_t index)
{
	struct space_block *b = spaces_block(s, index);
	struct map *contexts = &s->list[b->space]->contexts;

	if (b->next)
		spaces_block(s, b->next - 1)->prev = b->prev;
	if (b->prev)
		spaces_block(s, b->prev - 1)->next = b->next;
	else if (b->next)
		*map_find(contexts, b->context) = b->next;
	else
		map_remove(contexts, b->context);
}

/* Tell the space's own model, as if this were an event of the host. */
static int tell(struct spaces *s, const struct space_block *b, enum event_kind kind)
{
	struct space *sp = s->list[b->space];
	uint64_t peak = sp->model->peak.bytes;
	struct event e = {.kind = kind,
	    .thread = b->block.thread,
	    .stack = b->block.stack,
	    .time_ns = s->now_ns,
	    .address = b->block.address,
	    .size = b->block.size,
	    .block = &b->block};
	int rc = model_apply(sp->model, &e, NULL);

	if (sp->model->peak.bytes != peak)
		sp->peak_event = s->now_event;
	return !rc && s->witness.block ? s->witness.block(s->witness.arg, sp, &e) : rc;
}

/* Create a record, found by its address or handle. The space's model counts an acquisition, or,
 * with `again`, a release taken back. 0 or -ENOMEM. */
static int block_new(struct spaces *s, const struct space_block *like, bool again, uint32_t *index)
{
	struct space *sp = s->list[like->space];
	struct space_block *b;
	uint64_t *slot;
	int rc = new_record(s, index);

	if (rc)
		return rc;
	b = spaces_block(s, *index);
	*b = *like;
	b->used = true;
	if (!again) {
		b->block.serial = ++s->serial;
		b->block.birth_ns = s->now_ns;
	}
	rc = link_context(s, *index);
	if (rc) {
		free_record(s, *index);
		return rc;
	}
	if (!is_handle(b) || b->references) {
		slot = map_put(table_of(s, sp, is_handle(b)), b->block.address);
		if (!slot)
			return -ENOMEM;
		*slot = *index + 1;
	}
	if (is_laid_out(s, b)) {
		struct range r = {.start = b->block.address,
		    .end = b->block.address + b->block.size,
		    .serial = *index,
		    .birth_ns = b->block.birth_ns,
		    .stack = b->block.stack,
		    .kind = LAYOUT_BLOCK};

		rc = ranges_add(&s->layout, &r);
		if (rc)
			return rc;
	}
	return tell(s, b, again ? EV_UNFREE : EV_ALLOC);
}

/* Release a block: tell the space's model and recycle the record. 0 or -ENOMEM. */
static int block_drop(struct spaces *s, uint32_t index)
{
	struct space_block *b = spaces_block(s, index);
	struct space *sp = s->list[b->space];
	struct map *table = table_of(s, sp, is_handle(b));
	const uint64_t *slot = map_find(table, b->block.address);
	int rc = 0;

	/* The handle's value may belong to another handle by now. */
	if (slot && *slot == index + 1)
		map_remove(table, b->block.address);
	unlink_context(s, index);
	if (is_laid_out(s, b))
		rc = ranges_cut(
		    &s->layout, b->block.address, b->block.address + b->block.size, NULL, NULL);
	sp->mapped_handles -= is_handle(b) && b->mapped;
	if (!rc)
		rc = tell(s, b, EV_FREE);
	free_record(s, index);
	return rc;
}

/* --- late releases --- */

/* Releases that come after the acquisition that they made possible. A release is written before the
 * call, so another thread's acquisition of the memory is newer; but the clocks of CPUs differ a
 * little. The acquisition has already dropped the block in its way, so its late release must not
 * release the new block. */

static void expect_late(struct spaces *s, uint64_t start, uint64_t end, enum space_late_kind kind)
{
	s->late[s->late_at++ % SPACE_LATE] = (struct space_late){.start = start,
	    .end = end,
	    .until_ns = s->now_ns + LATE_NS,
	    .thread = s->now_thread,
	    .kind = kind,
	    .valid = true};
	s->late_until_ns = s->now_ns + LATE_NS;
}

/* True when the release is one of those, and has been applied already. */
static bool take_late(struct spaces *s, const struct event *e, enum space_late_kind kind)
{
	if (e->time_ns > s->late_until_ns)
		return false;
	for (uint32_t n = 1; n <= SPACE_LATE; n++) {
		struct space_late *late = &s->late[(s->late_at - n) % SPACE_LATE];

		if (!late->valid || late->kind != kind || e->time_ns > late->until_ns ||
		    late->thread == e->thread)
			continue;
		if (kind == LATE_MAPPING
			? late->start >= e->address && late->end - e->address <= e->size
			: late->start == e->address) {
			late->valid = false;
			return true;
		}
	}
	return false;
}

/* --- ranges --- */

struct clearing {
	struct spaces *s;
	struct space *sp;
	VEC(struct range) ranges;
	int error;
};

static void on_hit(void *arg, const struct range *piece, int whole, int split)
{
	struct clearing *c = arg;
	struct spaces *s = c->s;

	if (!c->error)
		c->error = vec_push(&s->hit, (uint32_t)piece->serial);
	(void)whole, (void)split;
	if (piece->kind == LAYOUT_MAPPING) {
		struct space_block *b = spaces_block(s, (uint32_t)piece->serial);
		uint64_t size = piece->end - piece->start;

		b->mapped -= size < b->mapped ? size : b->mapped;
		if (!b->mapped)
			s->list[b->space]->mapped_handles--;
	}
}

/* Clear [start, end) in the layout: shorten mappings, drop blocks. */
static int clear_range(struct spaces *s, uint64_t start, uint64_t end)
{
	struct clearing c = {.s = s};
	int rc;

	s->hit.count = 0;
	rc = ranges_cut(&s->layout, start, end, on_hit, &c);
	if (rc || c.error)
		return rc ? rc : c.error;
	for (size_t i = 0; i < s->hit.count; i++) {
		uint32_t index = s->hit.items[i];
		struct space_block *b = spaces_block(s, index);

		if (!b->used) /* listed twice, and dropped already */
			continue;
		if (is_handle(b) && (b->mapped || b->references))
			continue;
		if (!is_handle(b)) {
			s->repairs++;
			expect_late(s, b->block.address, b->block.address, LATE_BLOCK);
		}
		rc = block_drop(s, index);
		if (rc)
			return rc;
	}
	return 0;
}

/* --- blocks and handles --- */

static int add_reference(struct spaces *s, const struct event *e)
{
	uint32_t index = block_at(s, NULL, e->address, true);

	if (index == SPACE_NONE)
		s->unmatched++;
	else
		spaces_block(s, index)->references++;
	return 0;
}

struct torch_block {
	struct spaces *s;
	uint32_t space;
};

/* The memory under a PyTorch block belongs to its segments: one, or many mapped pages in a row. */
static void torch_lies_in(void *arg, const struct range *r)
{
	const struct torch_block *b = arg;

	spaces_block(b->s, (uint32_t)r->serial)->torch = b->space + 1;
}

int space_on_alloc(struct spaces *s, struct space *sp, const struct event *e)
{
	bool handle = e->u.space.flags & TRACE_SPACE_HANDLE;
	uint32_t old, index;
	struct space_block b = {.block = {.address = e->address,
				    .size = e->u.space.flags & TRACE_SPACE_MULTICAST ? 0 : e->size,
				    .stack = e->stack,
				    .thread = e->thread,
				    .task = e->task},
	    .context = e->u.space.context,
	    .stream = e->u.space.stream,
	    .space = sp->index,
	    .flags = e->u.space.flags,
	    .captured = space_is_captured(s, e),
	    .references = handle};
	int rc = 0;

	if (e->size > SPACE_SIZE_MAX || e->address > UINT64_MAX - e->size)
		return 0; /* damage */
	if (handle && e->u.space.flags & TRACE_SPACE_REFERENCE)
		return add_reference(s, e);
	old = block_at(s, sp, e->address, handle);
	if (old != SPACE_NONE) {
		/* The old handle's release was not recorded; a mapping may keep its memory. */
		struct space_block *was = spaces_block(s, old);

		s->repairs++;
		expect_late(s, e->address, e->address, handle ? LATE_HANDLE : LATE_BLOCK);
		was->references = 0;
		if (!was->mapped || !handle)
			rc = block_drop(s, old);
	}
	if (!rc && is_laid_out(s, &b))
		rc = clear_range(s, e->address, e->address + b.block.size);
	if (!rc)
		rc = block_new(s, &b, false, &index);
	if (rc)
		return rc;
	if (sp->kind == SPACE_TORCH)
		ranges_within(&s->layout, e->address, e->address + b.block.size, torch_lies_in,
		    &(struct torch_block){s, b.space});
	return 0;
}

static void remember(struct spaces *s, uint32_t index, uint32_t thread)
{
	struct space_undo *to = &s->undo[s->undo_at++ % SPACE_UNDO];

	to->copy = *spaces_block(s, index);
	to->index = index;
	to->thread = thread;
	to->valid = true;
}

int space_on_free(struct spaces *s, struct space *sp, const struct event *e)
{
	bool handle = e->u.space.flags & TRACE_SPACE_HANDLE;
	uint32_t index = block_at(s, sp, e->address, handle);
	struct space_block *b;
	struct space *of;
	struct map *table;

	if (take_late(s, e, handle ? LATE_HANDLE : LATE_BLOCK))
		return 0;
	if (index == SPACE_NONE) {
		s->unmatched++;
		return 0;
	}
	b = spaces_block(s, index);
	of = s->list[b->space];
	/* PyTorch's releases do not fail, and there are many. */
	if (of->kind != SPACE_TORCH)
		remember(s, index, e->thread);
	if (handle && b->references > 1) {
		b->references--;
		return 0;
	}
	if (handle && b->mapped) {
		b->references = 0;
		table = table_of(s, of, true);
		map_remove(table, b->block.address);
		return 0;
	}
	return block_drop(s, index);
}

int space_on_unfree(struct spaces *s, struct space *sp, const struct event *e)
{
	bool handle = e->u.space.flags & TRACE_SPACE_HANDLE;
	struct space_undo *found = NULL;
	struct space_block copy;
	uint32_t index;

	for (uint32_t n = 1; n <= SPACE_UNDO && !found; n++) {
		struct space_undo *u = &s->undo[(s->undo_at - n) % SPACE_UNDO];

		if (u->valid && u->thread == e->thread && u->copy.block.address == e->address &&
		    is_handle(&u->copy) == handle &&
		    (!sp || s->list[u->copy.space] == sp || !has_own_table(sp)))
			found = u;
	}
	if (!found) {
		s->unmatched++;
		return 0;
	}
	found->valid = false;
	copy = found->copy;
	index = block_at(s, s->list[copy.space], e->address, handle);
	if (index != SPACE_NONE) {
		struct space_block *b = spaces_block(s, index);

		if (handle && b->block.serial == copy.block.serial)
			b->references++; /* one of several references */
		else
			s->repairs++; /* another block lives there by now */
		return 0;
	}
	if (handle && spaces_block(s, found->index)->used &&
	    spaces_block(s, found->index)->block.serial == copy.block.serial) {
		/* A mapping kept the memory: restore only the reference. */
		uint64_t *slot = map_put(&s->handles, e->address);

		if (!slot)
			return -ENOMEM;
		*slot = found->index + 1;
		spaces_block(s, found->index)->references = 1;
		return 0;
	}
	copy.references = handle;
	copy.mapped = 0;
	if (is_laid_out(s, &copy)) {
		int rc = clear_range(s, copy.block.address, copy.block.address + copy.block.size);
		if (rc)
			return rc;
	}
	return block_new(s, &copy, true, &index);
}

/* --- a handle's memory lives as long as it has a reference or a mapping --- */

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
		expect_late(arg, r->start, r->end, LATE_MAPPING);
}

int space_on_map(struct spaces *s, const struct event *e)
{
	uint32_t index = block_at(s, NULL, e->u.space.handle, true);
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
	rc = clear_range(s, r.start, r.end);
	if (rc)
		return rc;
	/* This very mapping may have kept it. */
	if (block_at(s, NULL, e->u.space.handle, true) != index)
		return 0;
	return add_mapping(s, index, &r);
}

static void keep_piece(void *arg, const struct range *r)
{
	struct spaces *s = arg;
	uint64_t start = r->start > s->unmapped_start ? r->start : s->unmapped_start;
	uint64_t end = r->end < s->unmapped_end ? r->end : s->unmapped_end;

	if (r->kind != LAYOUT_MAPPING || start >= end || s->unmapped.count == UNMAPPED_MAX)
		return;
	/* Without memory it cannot be restored. */
	if (vec_push(
		&s->unmapped, (struct space_unmapped){*r, *spaces_block(s, (uint32_t)r->serial)}))
		return;
	s->unmapped.items[s->unmapped.count - 1].piece.start = start;
	s->unmapped.items[s->unmapped.count - 1].piece.end = end;
}

int space_on_unmap(struct spaces *s, const struct event *e)
{
	uint64_t end;

	if (!end_of(e, &end) || take_late(s, e, LATE_MAPPING))
		return 0;
	s->unmapped.count = 0;
	s->unmapped_start = e->address;
	s->unmapped_end = end;
	s->unmapped_thread = e->thread;
	ranges_within(&s->layout, e->address, end, keep_piece, s);
	return clear_range(s, e->address, end);
}

int space_on_ununmap(struct spaces *s, const struct event *e)
{
	int rc = 0;

	if (e->address != s->unmapped_start || e->thread != s->unmapped_thread)
		return 0;
	for (size_t i = 0; i < s->unmapped.count && !rc; i++) {
		struct space_unmapped *u = &s->unmapped.items[i];
		struct space_block *b = spaces_block(s, (uint32_t)u->piece.serial);
		uint32_t index = (uint32_t)u->piece.serial;

		rc = clear_range(s, u->piece.start, u->piece.end);
		if (rc)
			break;
		if (!b->used || b->block.serial != u->copy.block.serial) {
			/* The unmapping had released the memory; later pieces belong to it, too. */
			u->copy.references = 0;
			u->copy.mapped = 0;
			rc = block_new(s, &u->copy, true, &index);
			for (size_t k = i; k < s->unmapped.count; k++)
				if (s->unmapped.items[k].copy.block.serial == u->copy.block.serial)
					s->unmapped.items[k].piece.serial = index;
			if (rc)
				break;
		}
		u->piece.serial = index;
		rc = add_mapping(s, index, &u->piece);
	}
	s->unmapped.count = 0;
	return rc;
}

/* --- releases in bulk --- */

/* Release all blocks of one context of a space. A handle's memory stays while it is mapped. */
static int clear_context(struct spaces *s, struct space *sp, uint64_t context)
{
	const uint64_t *head = map_find(&sp->contexts, context);
	uint32_t at = head ? (uint32_t)*head : 0, next;
	int rc = 0;

	for (; at && !rc; at = next) {
		struct space_block *b = spaces_block(s, at - 1);

		next = b->next;
		if (is_handle(b) && b->mapped) {
			if (block_at(s, sp, b->block.address, true) == at - 1)
				map_remove(&s->handles, b->block.address);
			b->references = 0;
			continue;
		}
		rc = block_drop(s, at - 1);
	}
	return rc;
}

static void on_mapping(void *arg, const struct range *r)
{
	struct clearing *c = arg;

	if (r->kind == LAYOUT_MAPPING && !c->error &&
	    c->s->list[spaces_block(c->s, (uint32_t)r->serial)->space] == c->sp)
		c->error = vec_push(&c->ranges, *r);
}

static int clear_mappings(struct spaces *s, struct space *sp)
{
	struct clearing c = {.s = s, .sp = sp};

	if (sp->mapped_handles)
		ranges_each(&s->layout, on_mapping, &c);
	for (size_t i = 0; i < c.ranges.count && !c.error; i++)
		c.error = clear_range(s, c.ranges.items[i].start, c.ranges.items[i].end);
	vec_free(&c.ranges);
	return c.error;
}

/* Release everything in a space, and other allocations in its contexts. */
static int clear_space(struct spaces *s, struct space *sp)
{
	VEC(uint64_t) contexts = {0};
	int rc = clear_mappings(s, sp);

	for (size_t i = 0; i < sp->contexts.capacity && !rc; i++)
		if (sp->contexts.used[i])
			rc = vec_push(&contexts, sp->contexts.slots[i].key);
	for (size_t i = 0; i < contexts.count && !rc; i++) {
		rc = clear_context(s, sp, contexts.items[i]);
		for (uint32_t n = 0; n < s->count && !rc && contexts.items[i]; n++)
			if (s->list[n]->kind == SPACE_MANAGED || s->list[n]->kind == SPACE_PINNED)
				rc = clear_context(s, s->list[n], contexts.items[i]);
	}
	vec_free(&contexts);
	return rc;
}

int space_on_clear(struct spaces *s, struct space *sp, const struct event *e)
{
	static const enum space_kind of_device[] = {SPACE_CUDA, SPACE_POOL, SPACE_GRAPH};
	uint64_t object = e->u.space.handle;
	struct space *of;
	int rc = 0;

	switch ((enum trace_clear)e->u.space.what) {
	case TRACE_CLEAR_CONTEXT:
		for (uint32_t i = 0; i < s->count && !rc; i++)
			if (s->list[i]->kind == SPACE_CUDA || s->list[i]->kind == SPACE_MANAGED ||
			    s->list[i]->kind == SPACE_PINNED)
				rc = clear_context(s, s->list[i], object);
		break;
	case TRACE_CLEAR_DEVICE:
		for (size_t i = 0; i < sizeof(of_device) / sizeof(*of_device) && !rc; i++)
			if ((of = spaces_of(s, of_device[i], sp->device))) {
				rc = clear_space(s, of);
				space_forget_contexts(of);
			}
		break;
	case TRACE_CLEAR_POOL:
	case TRACE_CLEAR_GRAPH:
		rc = clear_context(s, sp, object);
		space_forget_pool(sp, object);
		break;
	}
	return rc;
}
