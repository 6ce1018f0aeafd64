/* stack_tree.c - turns definitions of stacks, in any order, into nodes of a tree. */
#include <stdlib.h>
#include <string.h>

#include "trace/definitions/definitions.h"
#include "whyoom/trace.h"

struct def_pending {
	uint64_t id, base, keep;
	const uint8_t *frames;
	size_t bytes;
	uint64_t count;
	bool open; /* on the current path: a second visit is a cycle */
};

/* With many stacks, the way down to a node misses the CPU's caches at most steps. So a few
 * definitions are in flight at a time. Each takes a turn when another one arrives: it reads the
 * memory that it prefetched in its last turn, and prefetches the next. It first finds the end of
 * its base, then its frames' numbers and ways, and then the deepest run that they lead to. The
 * oldest one is made into nodes when it leaves, so the result is the same as if each were made at
 * once. */
#define FLIGHTS 10u
#define RING 16u /* at least FLIGHTS */
#define IDS 64u /* more than FLIGHTS; ids mostly follow each other */

/* The work of the next turn. BASE and the stages before READ prefetch the base; MADE has none. */
enum stage { BASE, READ = BASE + STACKS_PREFETCH_STEPS, PLACE, RUN, NODES, THERE, MADE };

struct flight {
	struct def_pending p;
	VEC(uint32_t) numbers; /* of the definition's own frames, p.count */
	VEC(uint64_t) ways; /* as many */
	unsigned stage; /* enum stage */
	bool near; /* it has no base, or the previous definition, as most do */
	uint32_t run; /* likely the deepest run on its way; 0: none known */
	uint32_t begins; /* count of own frames up to that run's first node */
};

/* The ways of the frames of a definition that is likely to be the next one's base: one path for
 * each thread, while there are few threads. */
#define PATHS 8u
struct path {
	uint64_t id; /* 0: none */
	uint64_t from, depth; /* ways from `from` to `depth` are known */
	VEC(uint64_t) ways;
};

/* A cache of frames' numbers, by their written form. */
#define SEEN_BITS 10u
struct seen_frame {
	uint64_t address;
	uint32_t v;
	uint32_t number; /* 1 + number; 0: none */
};

struct def_flights {
	uint64_t first, next; /* flight n is flights[n % RING] */
	struct flight flights[RING];
	uint64_t latest; /* id of the latest definition */
	uint64_t by_id[IDS]; /* by id % IDS: 1 + the latest flight */
	struct path paths[PATHS];
	uint32_t next_path; /* next path to replace */
	struct seen_frame seen[1u << SEEN_BITS];
};

static struct flight *flight_at(struct def_flights *all, uint64_t n)
{
	return &all->flights[n % RING];
}

/* The functions below return 0, -ENOMEM, or 1: the body contradicts the format. */

/* Return a frame's number: `v`, and except for CUT and END an address or offset. 0: no memory. */
static uint32_t number_of(struct defs *d, uint64_t v, uint64_t address)
{
	struct frame frame = {.address = address};
	uint64_t *index = NULL;

	switch (v & 3) {
	case TRACE_FRAME_NATIVE:
		frame.kind = FRAME_NATIVE;
		frame.exact = v & 4;
		if (v >> 3)
			index = map_find(&d->module_ids, v >> 3);
		frame.module = index ? (uint32_t)*index : 0;
		break;
	case TRACE_FRAME_PYTHON:
		frame.kind = FRAME_PYTHON;
		index = map_find(&d->code_ids, v >> 2);
		frame.module = index ? (uint32_t)*index : 0;
		break;
	default:
		frame.kind = (v & 3) == TRACE_FRAME_CUT ? FRAME_CUT : FRAME_END;
		frame.module = v >> 2 > UINT32_MAX ? UINT32_MAX : (uint32_t)(v >> 2);
	}
	return stacks_intern(&d->stacks, &frame);
}

static inline struct seen_frame *seen_at(struct def_flights *all, uint64_t v, uint64_t address)
{
	uint64_t hash = (address << 14 ^ v) * 0x9e3779b97f4a7c15ull;

	return &all->seen[hash >> (64 - SEEN_BITS)];
}

/* The same for a frame that was not seen lately. */
static uint32_t first_number_of(struct defs *d, uint64_t v, uint64_t address)
{
	struct seen_frame *seen = seen_at(d->flights, v, address);

	if (v > UINT32_MAX)
		return number_of(d, v, address);
	if (!seen->number || seen->address != address || seen->v != (uint32_t)v)
		*seen = (struct seen_frame){address, (uint32_t)v, number_of(d, v, address)};
	return seen->number;
}

/* True if the written frame has no address or offset, but a length. */
static bool is_cut(uint64_t v)
{
	return (v & 3) != TRACE_FRAME_NATIVE && (v & 3) != TRACE_FRAME_PYTHON;
}

/* `address` is the previous native frame's; it becomes this frame's. */
static uint64_t frame_address(uint64_t v, uint64_t w, uint64_t *address)
{
	return (v & 3) == TRACE_FRAME_NATIVE ? *address += cursor_signed(w) : w;
}

static struct cursor read_frame(
    struct defs *d, struct cursor c, uint64_t *address, uint32_t *number)
{
	uint64_t v = cursor_varint(&c), w = is_cut(v) ? 0 : cursor_varint(&c);

	*number = first_number_of(d, v, frame_address(v, w, address));
	return c;
}

/* Read the frames of a definition that hangs from the node at the end of `way`. */
static int read_frames(struct defs *d, struct flight *f, uint64_t way)
{
	struct cursor c = cursor_of(f->p.frames, f->p.bytes), from;
	const struct seen_frame *seen;
	uint64_t address = 0, at, v, w, *ways;
	size_t count = f->p.count;
	uint32_t number, *numbers;

	/* An empty list needs an array, too. */
	if (vec_reserve(&f->numbers, count + 1) || vec_reserve(&f->ways, count + 1))
		return -ENOMEM;
	numbers = f->numbers.items;
	ways = f->ways.items;
	for (size_t i = 0; i < count; i++) {
		/* Nearly all frames have two short numbers, and one follows the other. */
		from = c;
		if (__builtin_expect(cursor_left(&c) >= 4 && cursor_short(&c, &v) && !is_cut(v) &&
					 cursor_short(&c, &w),
			1)) {
			at = frame_address(v, w, &address);
			seen = seen_at(d->flights, v, at);
			number = seen->number;
			if (__builtin_expect(
				seen->address != at || seen->v != (uint32_t)v || !number, 0))
				number = first_number_of(d, v, at);
		} else {
			uint64_t far = address;

			c = read_frame(d, from, &far, &number);
			address = far;
			if (c.bad)
				return 1;
		}
		if (!number--)
			return -ENOMEM;
		way = stacks_way_on(&d->stacks, way, number);
		numbers[i] = number;
		ways[i] = way;
	}
	return 0;
}

/* Make the definition's nodes; the first `done` of its frames exist and lead to `at`. */
static int make(struct defs *d, struct flight *f, struct stack_at at, size_t done)
{
	int r = stacks_descend(
	    &d->stacks, &at, f->numbers.items + done, f->ways.items + done, f->p.count - done);

	if (!r)
		r = stacks_define(&d->stacks, f->p.id, at);
	return r == -EEXIST ? 1 : r;
}

/* Make a definition whose base ends at `base`; `f` receives its frames. */
static int build_stack(
    struct defs *d, const struct def_pending *p, struct stack_at base, struct flight *f)
{
	int r;

	if (p->keep > stacks_depth(&d->stacks, base) || p->count > STACK_DEPTH_MAX - p->keep)
		return 1;
	base = stacks_ancestor(&d->stacks, base, (uint32_t)p->keep);
	f->p = *p;
	r = read_frames(d, f, stacks_way(&d->stacks, base));
	return r ? r : make(d, f, base, 0);
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

/* Find the way to the node that its frames hang from, through flights and the tree. False: not
 * known yet, or there is none. */
static bool look_for_way(struct defs *d, const struct def_pending *p, uint64_t *way)
{
	const struct stacks *s = &d->stacks;
	struct def_flights *all = d->flights;
	const struct def_pending *at = p;
	struct stack_at base = {0};

	while (at->base) {
		uint64_t n = all->by_id[at->base % IDS];
		const struct flight *f = flight_at(all, n - 1);

		if (n <= all->first || f->p.id != at->base)
			break;
		if (p->keep > f->p.keep + f->p.count)
			return false;
		if (p->keep > f->p.keep) {
			*way = f->ways.items[p->keep - f->p.keep - 1];
			return true;
		}
		at = &f->p;
	}
	if (at->base && !stacks_defined(s, at->base, &base))
		return false;
	if (p->keep > stacks_depth(s, base))
		return false;
	*way = stacks_way(s, stacks_ancestor(s, base, (uint32_t)p->keep));
	return true;
}

/* The same through the paths; *path is the one that this definition continues. */
static bool find_way(struct defs *d, const struct def_pending *p, uint64_t *way, struct path **path)
{
	struct def_flights *all = d->flights;

	*path = &all->paths[all->next_path];
	for (uint32_t i = 0; i < PATHS; i++) {
		if (p->base && all->paths[i].id == p->base) {
			*path = &all->paths[i];
			if (p->keep > (*path)->from && p->keep <= (*path)->depth) {
				*way = (*path)->ways.items[p->keep - 1];
				return true;
			}
			return look_for_way(d, p, way);
		}
	}
	all->next_path = (all->next_path + 1) % PATHS;
	(*path)->from = UINT64_MAX;
	return look_for_way(d, p, way);
}

/* Append the frames of `f` to the path's kept part. */
static int lead_path(struct path *path, const struct flight *f, uint64_t way)
{
	uint64_t keep = f->p.keep, depth = keep + f->p.count;

	path->id = 0;
	if (vec_reserve(&path->ways, depth))
		return -ENOMEM;
	if (path->from >= keep)
		path->from = keep;
	if (keep && path->from == keep)
		path->ways.items[--path->from] = way;
	if (f->p.count)
		memcpy(path->ways.items + keep, f->ways.items, f->p.count * sizeof(*f->ways.items));
	path->depth = depth;
	path->id = f->p.id;
	return 0;
}

/* Prefetch the place of the deepest run that may exist; none lies beyond the first `n` frames. */
static void ask_for_place(const struct stacks *s, struct flight *f, size_t n)
{
	f->stage = THERE;
	f->run = 0;
	while (n > 0 && !stacks_may_begin(s, f->ways.items[n - 1]))
		n--;
	f->begins = (uint32_t)n;
	if (!n)
		return;
	__builtin_prefetch(stacks_place(s, f->ways.items[n - 1]));
	f->stage = PLACE;
}

static void look(const struct stacks *s, struct flight *f)
{
	struct stack_at at;
	size_t done = f->begins;
	uint32_t jump;

	switch (f->stage) {
	case PLACE:
		f->run = stacks_find_run(s, f->ways.items[done - 1]);
		if (!f->run) {
			ask_for_place(s, f, done - 1);
			break;
		}
		__builtin_prefetch(&s->begins.items[f->run]);
		__builtin_prefetch(&s->runs.items[f->run]);
		f->stage = RUN;
		break;
	case RUN:
		__builtin_prefetch(&s->numbers.items[s->runs.items[f->run].first]);
		jump = s->begins.items[f->run].jump;
		__builtin_prefetch(&s->begins.items[jump]);
		__builtin_prefetch(&s->runs.items[jump]);
		f->stage = NODES;
		break;
	case NODES: /* the missing nodes will enter the table */
		at = (struct stack_at){s->runs.items[f->run].first, f->run};
		done += stacks_match_run(s, &at, f->numbers.items + done, f->p.count - done);
		if (done < f->p.count)
			__builtin_prefetch(stacks_place(s, f->ways.items[done]));
		f->stage = THERE;
		break;
	}
}

/* Make the oldest definition alone, because its base is not known yet or something looks wrong. */
static int define_now(struct defs *d, struct flight *f)
{
	const struct def_pending p = f->p;
	struct stack_at base = {0};

	f->stage = MADE;
	if (p.base && !stacks_defined(&d->stacks, p.base, &base))
		return put_off(d, p);
	return build_stack(d, &p, base, f);
}

static int finish_first(struct defs *d);

/* Read the frames of flight n. All earlier flights have read theirs. */
static int take_frames(struct defs *d, uint64_t n)
{
	struct def_flights *all = d->flights;
	struct flight *f = flight_at(all, n);
	uint64_t way, *latest = &all->by_id[f->p.id % IDS];
	struct path *path;
	int r = 0;

	/* No two flights share a slot of by_id, so it holds the only candidate; and no flight has
	 * the id of a stack that exists. */
	if (*latest > all->first || stacks_is_defined(&d->stacks, f->p.id) ||
	    !find_way(d, &f->p, &way, &path)) {
		while (all->first != n && !r)
			r = finish_first(d);
		return r ? r : define_now(d, f);
	}
	f->stage = MADE; /* unless all succeeds */
	if (f->p.count > STACK_DEPTH_MAX - f->p.keep)
		return 1;
	r = read_frames(d, f, way);
	if (!r)
		r = lead_path(path, f, way);
	if (r)
		return r;
	*latest = n + 1;
	ask_for_place(&d->stacks, f, f->p.count);
	return 0;
}

static int take_turn(struct defs *d, uint64_t n)
{
	int r = take_frames(d, n);

	d->broken += r == 1;
	return r < 0 ? r : 0;
}

static inline int turn(struct defs *d, uint64_t n)
{
	struct flight *f = flight_at(d->flights, n);

	if (f->stage == READ)
		return take_turn(d, n);
	if (f->stage < READ) {
		if (!f->near)
			stacks_prefetch_end(&d->stacks, f->p.base, f->stage);
		f->stage++;
	} else if (f->stage < THERE) {
		look(&d->stacks, f);
	}
	return 0;
}

/* Make the oldest definition. Its base exists. */
static int make_first(struct defs *d, struct flight *f)
{
	const struct stacks *s = &d->stacks;
	struct stack_at at = {0};

	if (f->run &&
	    stacks_begins(s, f->run, f->ways.items[f->begins - 1], f->p.keep + f->begins)) {
		at = (struct stack_at){s->runs.items[f->run].first, f->run};
		return make(d, f, at, f->begins);
	}
	if ((f->p.base && !stacks_defined(s, f->p.base, &at)) || f->p.keep > stacks_depth(s, at))
		return 1;
	return make(d, f, stacks_ancestor(s, at, (uint32_t)f->p.keep), 0);
}

static int finish_first(struct defs *d)
{
	struct def_flights *all = d->flights;
	struct flight *f = flight_at(all, all->first);
	int r = 0;

	if (f->stage <= READ) {
		f->stage = READ;
		r = turn(d, all->first);
	}
	if (!r && f->stage != MADE) {
		r = make_first(d, f);
		d->broken += r == 1;
	}
	all->first++;
	return r < 0 ? r : 0;
}

/* Make room for one more; each flight takes a turn. */
static int move_on(struct defs *d)
{
	struct def_flights *all = d->flights;
	int r = all->next - all->first == FLIGHTS ? finish_first(d) : 0;

	for (uint64_t n = all->next; n > all->first && !r; n--)
		r = turn(d, n - 1);
	return r;
}

int defs_stacks_settle(struct defs *d)
{
	int r = 0;

	while (d->flights && d->flights->first != d->flights->next && !r)
		r = finish_first(d);
	return r;
}

int defs_stack(struct defs *d, struct cursor *c)
{
	struct def_pending p = {.id = cursor_varint(c),
	    .base = cursor_varint(c),
	    .keep = cursor_varint(c),
	    .count = cursor_varint(c)};
	struct def_flights *all = d->flights;
	struct flight *f;
	int r;

	p.frames = c->p;
	p.bytes = cursor_left(c);
	if (c->bad || !p.id || p.count > p.bytes)
		return 1;
	if (!all)
		all = d->flights = calloc(1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	r = move_on(d);
	if (r)
		return r;
	f = flight_at(all, all->next++);
	f->p = p;
	f->run = 0;
	f->stage = BASE;
	f->near = !p.base || p.base == all->latest;
	all->latest = p.id;
	return turn(d, all->next - 1);
}

void defs_stacks_fini(struct defs *d)
{
	vec_free(&d->pending);
	map_free(&d->pending_ids);
	for (size_t i = 0; d->flights && i < RING; i++) {
		vec_free(&d->flights->flights[i].numbers);
		vec_free(&d->flights->flights[i].ways);
	}
	for (size_t i = 0; d->flights && i < PATHS; i++)
		vec_free(&d->flights->paths[i].ways);
	free(d->flights);
	d->flights = NULL;
}

/* Define a pending stack and its bases: down to the first known base, with a list instead of
 * recursion, then up again. */
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
		if (p->open) { /* a cycle: none of these can be made */
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
			r = build_stack(d, p, base, d->flights->flights);
		else
			r = 1;
		/* `open` stays set on a failed stack, so that the next visit fails at once. */
		if (r == 1)
			d->broken++;
		else if (!r)
			p->open = false;
	}
	vec_free(&path);
	return r < 0 ? r : 0;
}

int defs_pause(struct defs *d)
{
	struct stack_at node;

	for (size_t i = 0; i < d->pending.count; i++) {
		const struct def_pending *p = &d->pending.items[i];
		int r = p->open || stacks_defined(&d->stacks, p->id, &node) ? 0 : resolve(d, i);
		if (r)
			return r;
	}
	defs_stacks_fini(d);
	return 0;
}

int defs_finish(struct defs *d)
{
	int r = defs_pause(d);

	if (!r)
		stacks_close(&d->stacks);
	return r;
}
