#include "trace/defs_stacks.h"

#include <stdlib.h>
#include <string.h>

#include "whyoom/trace.h"

struct def_pending {
	uint64_t id, base, keep;
	const uint8_t *frames;
	size_t bytes;
	uint64_t count;
	bool open; /* on the path that is followed now: seen again, it is a cycle */
};

/* The address and the module of the native frame before, by its id and by its index. */
struct native_before {
	uint64_t address, id;
	uint32_t module;
};

/*
 * The way down to a node is one look into memory after another, each of which depends on the one
 * before it, and most of which miss the caches where there are many stacks. So a number of stacks
 * are on their ways at a time, in turns: each step asks for what the next one looks at, and the
 * others go on meanwhile. They only look. What is not there yet is made by the eldest alone, once
 * it can go no farther: all comes out as if one had been defined after the other.
 */
#define FLIGHTS 16u
enum stage {
	WAITS, /* for its base to come as far as what is kept of it */
	GOES, /* along a run, with the next frame */
	AT_TABLE, /* the place in the table was asked for */
	AT_NODE, /* and the node that is there, and its run */
	STAYS, /* what comes next is made */
};

struct flight {
	struct def_pending p;
	struct cursor c;
	struct native_before before;
	struct frame frame; /* the next one, but for WAITS and GOES */
	uint64_t done; /* frames that were found */
	struct stack_at start, at;
	uint64_t base; /* WAITS: which flight */
	size_t place; /* in the table */
	uint32_t own; /* number of the frame */
	struct stack_at child; /* to look at */
	enum stage stage;
	bool more; /* STAYS: `frame` is the next one */
	bool again; /* STAYS: from the start */
};

struct def_flights {
	uint64_t first, next; /* flight n is flights[n % FLIGHTS] */
	struct flight flights[FLIGHTS];
};

/* The functions below give 0, -ENOMEM, or 1: the body contradicts the format. */

static int read_other_frame(const struct defs *d, struct cursor *c, uint64_t v, struct frame *out)
{
	uint64_t id = v >> 2, *index;

	*out = (struct frame){0};
	if ((v & 3) == TRACE_FRAME_PYTHON) {
		out->kind = FRAME_PYTHON;
		index = map_find(&d->code_ids, id);
		out->module = index ? (uint32_t)*index : 0;
		out->address = cursor_varint(c);
	} else {
		out->kind = (v & 3) == TRACE_FRAME_CUT ? FRAME_CUT : FRAME_END;
		out->module = id > UINT32_MAX ? UINT32_MAX : (uint32_t)id;
	}
	return c->bad;
}

static inline int read_frame(
    const struct defs *d, struct cursor *c, struct native_before *before, struct frame *out)
{
	uint64_t v = cursor_varint(c), *index;

	if ((v & 3) != TRACE_FRAME_NATIVE)
		return read_other_frame(d, c, v, out);
	before->address += cursor_svarint(c);
	if (v >> 3 != before->id) {
		before->id = v >> 3;
		index = before->id ? map_find(&d->module_ids, before->id) : NULL;
		before->module = index ? (uint32_t)*index : 0;
	}
	*out = (struct frame){.kind = FRAME_NATIVE,
	    .module = before->module,
	    .address = before->address,
	    .exact = v & 4};
	return c->bad;
}

/* From `at` on, with the frames behind those that were found. */
static int make_rest(struct defs *d, struct flight *f)
{
	struct stacks *s = &d->stacks;
	uint64_t left = f->p.count - f->done;
	struct stack_at at = f->at;
	struct frame frame = f->frame;
	uint32_t end = stacks_run_end(s, at.run);
	int r;

	for (bool more = f->more; left; left--, more = false) {
		if (!more && read_frame(d, &f->c, &f->before, &frame))
			return 1;
		/* Mostly the next one of the run is it. */
		if (at.node + 1 < end && stacks_same_frame(stacks_frame(s, at.node + 1), &frame)) {
			at.node++;
			continue;
		}
		r = stacks_branch(s, &at, &frame);
		if (r)
			return r;
		end = stacks_run_end(s, at.run);
	}
	r = stacks_define(s, f->p.id, at);
	return r == -EEXIST ? 1 : r;
}

/* Nothing of it is known but where its base ends. */
static int build_stack(struct defs *d, const struct def_pending *p, struct stack_at base)
{
	struct flight f = {.p = *p, .c = cursor_of(p->frames, p->bytes)};

	if (p->keep > stacks_depth(&d->stacks, base))
		return 1;
	f.at = stacks_ancestor(&d->stacks, base, (uint32_t)p->keep);
	return make_rest(d, &f);
}

static int put_off(struct defs *d, struct def_pending p)
{
	uint64_t *place;

	p.frames = (uint8_t *)arena_copy(&d->arena, p.frames, p.bytes);
	if (!p.frames || vec_push(&d->pending, p))
		return -ENOMEM;
	if (map_find(&d->pending_ids, p.id))
		return 1;
	place = map_put(&d->pending_ids, p.id);
	if (!place)
		return -ENOMEM;
	*place = d->pending.count;
	return 0;
}

/* What the eldest found holds if its base is what it took for it. */
static int finish(struct defs *d, struct flight *f)
{
	struct stack_at base = {0}, start;

	if (f->p.base && !stacks_defined(&d->stacks, f->p.base, &base))
		return put_off(d, f->p);
	if (f->again || f->stage == WAITS || f->p.keep > stacks_depth(&d->stacks, base))
		return build_stack(d, &f->p, base);
	start = stacks_ancestor(&d->stacks, base, (uint32_t)f->p.keep);
	if (start.node != f->start.node)
		return build_stack(d, &f->p, base);
	return make_rest(d, f);
}

static void stay(struct flight *f, bool again)
{
	f->stage = STAYS;
	f->again = again;
}

static void depart(const struct defs *d, struct flight *f, struct stack_at base)
{
	if (f->p.keep > stacks_depth(&d->stacks, base)) {
		stay(f, true);
		return;
	}
	f->start = f->at = stacks_ancestor(&d->stacks, base, (uint32_t)f->p.keep);
	__builtin_prefetch(&d->stacks.nodes.items[f->at.node]);
	f->stage = GOES;
}

static void wait_for_base(const struct defs *d, struct flight *f)
{
	const struct def_flights *all = d->flights;
	const struct flight *base = &all->flights[f->base % FLIGHTS];
	struct stack_at at;

	if (f->base < all->first) {
		if (stacks_defined(&d->stacks, f->p.base, &at))
			depart(d, f, at);
		else
			stay(f, true);
	} else if (base->stage != WAITS && !base->again &&
		   stacks_depth(&d->stacks, base->at) >= f->p.keep) {
		depart(d, f, base->at);
	}
}

/* Along the run as far as it is the same, and then to the table. */
static void go(const struct defs *d, struct flight *f)
{
	const struct stacks *s = &d->stacks;
	uint32_t end = stacks_run_end(s, f->at.run);

	for (; f->done < f->p.count; f->done++, f->at.node++) {
		if (read_frame(d, &f->c, &f->before, &f->frame)) {
			stay(f, true);
			return;
		}
		if (f->at.node + 1 == end ||
		    !stacks_same_frame(stacks_frame(s, f->at.node + 1), &f->frame)) {
			f->more = true;
			break;
		}
	}
	f->stage = STAYS;
	if (!f->more)
		return;
	f->own = stacks_find_frame(s, &f->frame);
	if (!f->own--)
		return;
	f->place = stacks_place(s, f->at.node, f->own);
	/* Where there is nothing to look for, what is made will be put there. */
	__builtin_prefetch(&s->table[f->place & (s->table_size - 1)]);
	if (stacks_branches(s, f->at.node))
		f->stage = AT_TABLE;
}

static void look_at_table(const struct stacks *s, struct flight *f)
{
	f->child = s->table[f->place & (s->table_size - 1)];
	if (!f->child.node) {
		f->stage = STAYS;
		return;
	}
	__builtin_prefetch(&s->nodes.items[f->child.node]);
	__builtin_prefetch(&s->runs.items[f->child.run]);
	f->stage = AT_NODE;
}

static void turn(struct defs *d, struct flight *f)
{
	const struct stacks *s = &d->stacks;

	switch (f->stage) {
	case WAITS:
		wait_for_base(d, f);
		break;
	case GOES:
		go(d, f);
		break;
	case AT_TABLE:
		look_at_table(s, f);
		break;
	case AT_NODE:
		if (stacks_is_child(s, f->child, f->at, f->own)) {
			f->at = f->child;
			f->done++;
			f->more = false;
			go(d, f);
		} else {
			f->place++;
			look_at_table(s, f);
		}
		break;
	case STAYS:
		break;
	}
}

/* Each goes on by a step; then the eldest are made, as far as they have found all that is there. */
static int round_of(struct defs *d)
{
	struct def_flights *all = d->flights;
	int r = 0;

	for (uint64_t n = all->first; n != all->next; n++)
		turn(d, &all->flights[n % FLIGHTS]);
	while (all->first != all->next && r >= 0) {
		struct flight *f = &all->flights[all->first % FLIGHTS];

		if (f->stage != STAYS && f->stage != WAITS)
			break;
		r = finish(d, f);
		d->broken += r == 1;
		all->first++;
	}
	return r < 0 ? r : 0;
}

int defs_stacks_settle(struct defs *d)
{
	int r = 0;

	while (d->flights && d->flights->first != d->flights->next && !r)
		r = round_of(d);
	return r;
}

int defs_stack(struct defs *d, struct cursor *c)
{
	struct def_pending p = {.id = cursor_varint(c),
	    .base = cursor_varint(c),
	    .keep = cursor_varint(c),
	    .count = cursor_varint(c)};
	struct def_flights *all = d->flights;
	struct stack_at base = {0};
	struct flight *f;
	int r = 0;

	p.frames = c->p;
	p.bytes = cursor_left(c);
	if (c->bad || !p.id || p.count > p.bytes)
		return 1;
	if (!all)
		all = d->flights = calloc(1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	while (all->next - all->first == FLIGHTS && !r)
		r = round_of(d);
	if (r)
		return r;
	f = &all->flights[all->next++ % FLIGHTS];
	f->p = p;
	f->c = cursor_of(p.frames, p.bytes);
	f->before = (struct native_before){0};
	f->done = 0;
	f->at = (struct stack_at){0};
	f->more = f->again = false;
	if (!p.base || stacks_defined(&d->stacks, p.base, &base)) {
		depart(d, f, base);
		return 0;
	}
	f->stage = WAITS;
	for (f->base = all->next - 1; f->base-- > all->first;)
		if (all->flights[f->base % FLIGHTS].p.id == p.base)
			return 0;
	stay(f, true);
	return 0;
}

void defs_stacks_fini(struct defs *d)
{
	vec_free(&d->pending);
	map_free(&d->pending_ids);
	free(d->flights);
	d->flights = NULL;
}

/* Defines one pending stack and those it rests on: down to the first base that is known, by a
 * list instead of recursion, then up again. */
static int resolve(struct defs *d, size_t first)
{
	VEC(size_t) path = {0};
	size_t at = first;
	uint64_t *next;
	struct stack_at base;
	int r = 0;

	for (;;) {
		struct def_pending *p = &d->pending.items[at];

		if (stacks_defined(&d->stacks, p->id, &base))
			break;
		if (p->open) { /* a cycle: none of these can be built */
			r = 1;
			break;
		}
		p->open = true;
		r = vec_push(&path, at);
		if (r || stacks_defined(&d->stacks, p->base, &base))
			break;
		next = map_find(&d->pending_ids, p->base);
		if (!next) {
			r = 1;
			break;
		}
		at = *next - 1;
	}
	while (path.count && r >= 0) {
		struct def_pending *p = &d->pending.items[path.items[--path.count]];

		if (!r && stacks_defined(&d->stacks, p->base, &base))
			r = build_stack(d, p, base);
		else
			r = 1;
		/* `open` stays set on those that failed: whoever comes here again fails at once. */
		if (r == 1)
			d->broken++;
		else if (!r)
			p->open = false;
	}
	vec_free(&path);
	return r < 0 ? r : 0;
}

int defs_finish(struct defs *d)
{
	struct stack_at node;

	for (size_t i = 0; i < d->pending.count; i++) {
		const struct def_pending *p = &d->pending.items[i];
		int r = p->open || stacks_defined(&d->stacks, p->id, &node) ? 0 : resolve(d, i);
		if (r)
			return r;
	}
	defs_stacks_fini(d);
	stacks_close(&d->stacks);
	return 0;
}
