#include "trace/definitions/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int stacks_init(struct stacks *s, uint64_t id_limit)
{
	map_seed();
	*s = (struct stacks){.dense_limit = id_limit < UINT32_MAX ? (size_t)id_limit : UINT32_MAX};
	s->table_size = 1024;
	s->table = calloc(s->table_size, sizeof(*s->table));
	s->sieve = calloc(s->table_size / 8, sizeof(*s->sieve));
	s->frame_table_size = 1024;
	s->frame_table = calloc(s->frame_table_size, sizeof(*s->frame_table));
	s->secret[0] = map_hash(1);
	s->secret[1] = map_hash(2);
	if (!s->table || !s->sieve || !s->frame_table || vec_push(&s->frames, (struct frame){0}) ||
	    vec_push(&s->numbers, 0) || vec_push(&s->runs, (struct stack_run){0}) ||
	    vec_push(&s->begins, (struct stack_begin){.way = map_hash(3)}) || vec_push(&s->ends, 0))
		return -ENOMEM;
	s->nodes = 1;
	return 0;
}

void stacks_fini(struct stacks *s)
{
	stacks_drop_search(s);
	vec_free(&s->frames);
	vec_free(&s->numbers);
	vec_free(&s->runs);
	map_free(&s->inner);
	vec_free(&s->inner_ends);
	vec_free(&s->ends);
	consecutive_fini(&s->closed_ends);
	vec_free(&s->dense);
	map_free(&s->sparse);
	vec_free(&s->scratch);
	free(s->order);
	*s = (struct stacks){0};
}

static uint64_t hash_frame(const struct frame *f)
{
	return map_hash(f->address ^ (uint64_t)f->module << 40 ^ (uint64_t)f->kind << 1 ^ f->exact);
}

static int rehash_frames(struct stacks *s)
{
	size_t size = s->frame_table_size * 2;
	uint32_t *table = calloc(size, sizeof(*table));

	if (!table)
		return -ENOMEM;
	for (size_t n = 0; n < s->frames.count; n++) {
		size_t i = hash_frame(&s->frames.items[n]) & (size - 1);
		while (table[i])
			i = (i + 1) & (size - 1);
		table[i] = (uint32_t)n + 1;
	}
	free(s->frame_table);
	s->frame_table = table;
	s->frame_table_size = size;
	return 0;
}

uint32_t stacks_intern(struct stacks *s, const struct frame *frame)
{
	size_t mask = s->frame_table_size - 1, i = hash_frame(frame) & mask;

	for (; s->frame_table[i]; i = (i + 1) & mask)
		if (stacks_same_frame(&s->frames.items[s->frame_table[i] - 1], frame))
			return s->frame_table[i];
	if (s->frames.count >= UINT32_MAX / 2 || vec_push(&s->frames, *frame))
		return 0;
	s->frame_table[i] = (uint32_t)s->frames.count;
	if (s->frames.count > s->frame_table_size / 2 && rehash_frames(s))
		return 0;
	return (uint32_t)s->frames.count;
}

uint64_t stacks_way(const struct stacks *s, struct stack_at at)
{
	uint64_t way = s->begins.items[at.run].way;

	for (uint32_t n = s->runs.items[at.run].first; n < at.node; n++)
		way = stacks_way_on(s, way, s->numbers.items[n + 1]);
	return way;
}

static inline void put_place(struct stacks *s, struct stack_place place)
{
	size_t mask = s->table_size - 1, i = place.tag & mask;

	while (s->table[i].run)
		i = (i + 1) & mask;
	s->table[i] = place;
	*stacks_sieve_word(s, place.tag) |= stacks_sieve_bits(place.tag);
}

static int rehash(struct stacks *s)
{
	size_t had = s->table_size, size = had * 2;
	struct stack_place *table = calloc(size, sizeof(*table)), *old = s->table;
	uint64_t *sieve = calloc(size / 8, sizeof(*sieve));

	if (!table || !sieve) {
		free(table);
		free(sieve);
		return -ENOMEM;
	}
	free(s->sieve);
	s->table = table;
	s->sieve = sieve;
	s->table_size = size;
	for (size_t i = 0; i < had; i++)
		if (old[i].run)
			put_place(s, old[i]);
	free(old);
	return 0;
}

/* Jumps as in a skew-binary list: the way up is logarithmic. */
static uint32_t jump_of(const struct stacks *s, uint32_t above)
{
	uint32_t jump = s->begins.items[above].jump, farther = s->begins.items[jump].jump;
	uint16_t level = s->begins.items[jump].level;

	return s->begins.items[above].level - level == level - s->begins.items[farther].level
		   ? farther
		   : above;
}

/* Find the run whose first node has that way and depth; 0: none. */
static uint32_t find_run(const struct stacks *s, uint64_t way, size_t depth)
{
	uint32_t tag = stacks_tag(way), run;
	size_t mask = s->table_size - 1, i = tag & mask;

	for (; (run = s->table[i].run); i = (i + 1) & mask)
		if (s->table[i].tag == tag && stacks_begins(s, run, way, depth))
			return run;
	return 0;
}

static int add_begin(struct stacks *s, uint32_t above, uint64_t way)
{
	struct stack_begin begin = {.way = way,
	    .jump = jump_of(s, above),
	    .level = (uint16_t)(s->begins.items[above].level + 1)};

	return vec_push(&s->begins, begin);
}

/* Add nodes under `at`, which lacks the first of them: as many as fit into one run. */
static int add_nodes(struct stacks *s, struct stack_at *at, const uint32_t *numbers,
    const uint64_t *ways, size_t *count)
{
	const struct stack_run *above = &s->runs.items[at->run];
	/* Under the very last node, the run grows, if no stack ends there. */
	bool goes_on = at->run && at->node + 1 == s->nodes && !s->begins.items[at->run].stack &&
		       s->nodes - above->first < STACK_RUN_MOST;
	size_t room = STACK_RUN_MOST - (goes_on ? s->nodes - above->first : 0);
	struct stack_run run = {.first = s->nodes,
	    .above = at->run,
	    .numbers = s->nodes,
	    .depth = (uint16_t)(stacks_depth(s, *at) + 1)};

	if (*count > room)
		*count = room;
	if (*count >= UINT32_MAX / 2 - s->nodes || vec_reserve(&s->numbers, s->nodes + *count))
		return -ENOMEM;
	if (!goes_on && (add_begin(s, at->run, ways[0]) || vec_push(&s->runs, run)))
		return -ENOMEM;
	memcpy(s->numbers.items + s->nodes, numbers, *count * sizeof(*numbers));
	s->numbers.count += *count;
	s->nodes += (uint32_t)*count;
	*at = (struct stack_at){s->nodes - 1, (uint32_t)s->runs.count - 1};
	if (goes_on)
		return 0;
	put_place(s, (struct stack_place){at->run, stacks_tag(ways[0])});
	return s->runs.count > s->table_size / 5 * 4 ? rehash(s) : 0;
}

static int add_all(struct stacks *s, struct stack_at *at, const uint32_t *numbers,
    const uint64_t *ways, size_t count)
{
	int r = 0;

	for (size_t some; count && !r; numbers += some, ways += some, count -= some) {
		some = count;
		r = add_nodes(s, at, numbers, ways, &some);
	}
	return r;
}

int stacks_descend(struct stacks *s, struct stack_at *at, const uint32_t *numbers,
    const uint64_t *ways, size_t count)
{
	size_t above = stacks_depth(s, *at), done;
	uint32_t run;

	if (count > STACK_DEPTH_MAX - above)
		return 1;
	for (done = stacks_match_run(s, at, numbers, count); done < count;
	     done += 1 + stacks_match_run(s, at, numbers + done + 1, count - done - 1)) {
		run = find_run(s, ways[done], above + done + 1);
		if (!run)
			return add_all(s, at, numbers + done, ways + done, count - done);
		*at = (struct stack_at){s->runs.items[run].first, run};
	}
	return 0;
}

struct stack_at stacks_ancestor(const struct stacks *s, struct stack_at at, uint32_t depth)
{
	const struct stack_run *run = &s->runs.items[at.run];

	if (depth >= run->depth)
		return (struct stack_at){run->first + (depth - run->depth), at.run};
	while (run->depth > depth) {
		uint32_t jump = s->begins.items[at.run].jump;

		at.run = s->runs.items[jump].depth > depth ? jump : run->above;
		run = &s->runs.items[at.run];
	}
	return (struct stack_at){run->first + (depth - run->depth), at.run};
}

/* Return 1 + the canonical id; 0: not defined. */
static uint32_t entry_of(const struct stacks *s, uint64_t raw)
{
	const uint64_t *far;

	if (raw && raw < s->plain)
		return (uint32_t)raw + 1;
	if (raw < s->dense.count)
		return s->dense.items[raw];
	far = map_find(&s->sparse, raw);
	return far ? (uint32_t)*far : 0;
}

bool stacks_is_defined(const struct stacks *s, uint64_t raw)
{
	return entry_of(s, raw) != 0;
}

static int put_entry(struct stacks *s, uint64_t raw, uint32_t entry)
{
	uint64_t *far;

	if (raw < s->dense_limit || raw < s->dense.count) {
		/* Room for some more: most ids follow each other. */
		if (raw >= s->dense.count && vec_reach(&s->dense, raw + 1024))
			return -ENOMEM;
		s->dense.items[raw] = entry;
		return 0;
	}
	far = map_put(&s->sparse, raw);
	if (!far)
		return -ENOMEM;
	*far = entry;
	return 0;
}

/* Return the stack that ends there; the first one gets the next id. 0: no memory. */
static uint32_t stack_at(struct stacks *s, struct stack_at at)
{
	uint64_t *inner = NULL;
	uint32_t stack;

	if (at.node + 1 < stacks_run_end(s, at.run)) {
		inner = map_put(&s->inner, at.node);
		if (!inner)
			return 0;
		stack = (uint32_t)*inner;
	} else {
		stack = s->begins.items[at.run].stack;
	}
	if (stack)
		return stack;
	if ((inner && vec_push(&s->inner_ends, at)) ||
	    vec_push(&s->ends, inner ? STACK_INNER | (uint32_t)(s->inner_ends.count - 1) : at.run))
		return 0;
	stack = (uint32_t)s->ends.count - 1;
	if (inner)
		*inner = stack;
	else
		s->begins.items[at.run].stack = stack;
	return stack;
}

int stacks_define(struct stacks *s, uint64_t raw, struct stack_at at)
{
	uint32_t stack = 0;

	if (entry_of(s, raw))
		return -EEXIST;
	if (at.node) {
		stack = stack_at(s, at);
		if (!stack)
			return -ENOMEM;
	}
	return put_entry(s, raw, stack + 1);
}

bool stacks_defined(const struct stacks *s, uint64_t raw, struct stack_at *at)
{
	uint32_t entry = entry_of(s, raw);

	if (!entry)
		return false;
	*at = stacks_end(s, entry - 1);
	return true;
}

void stacks_prefetch_end(const struct stacks *s, uint64_t raw, unsigned step)
{
	uint32_t entry, run;

	if (raw >= s->dense.count)
		return;
	if (step == 0) {
		__builtin_prefetch(&s->dense.items[raw]);
		return;
	}
	entry = s->dense.items[raw];
	if (!entry)
		return;
	if (step == 1) {
		__builtin_prefetch(&s->ends.items[entry - 1]);
		return;
	}
	run = s->ends.items[entry - 1];
	if (run & STACK_INNER)
		return;
	if (step == 2) {
		__builtin_prefetch(&s->runs.items[run]);
		__builtin_prefetch(&s->begins.items[run]);
		return;
	}
	__builtin_prefetch(&s->runs.items[s->runs.items[run].above]);
	run = s->begins.items[run].jump;
	__builtin_prefetch(&s->runs.items[run]);
	__builtin_prefetch(&s->begins.items[run]);
}

uint32_t stacks_canonical_slow(const struct stacks *s, uint64_t raw)
{
	uint32_t entry = entry_of(s, raw);

	return entry - (entry != 0);
}

size_t stacks_frames(struct stacks *s, uint32_t stack, const struct frame **frames)
{
	struct stack_at at = stacks_end(s, stack < s->ends.count ? stack : 0);
	size_t depth = stacks_depth(s, at);

	if (vec_reserve(&s->scratch, depth))
		return 0;
	for (size_t i = depth; i--; at = stacks_parent(s, at))
		s->scratch.items[i] = *stacks_frame(s, at);
	*frames = s->scratch.items;
	return depth;
}

/* Scratch for sorting the stacks. */
struct ordering {
	uint32_t *place; /* of each run: stacks in its branch, later the branch's start */
	uint32_t *stack; /* of each run: the stack that ends at its last node; 0: none */
	uint32_t *begin; /* of each run, and one more: its branches in `below` */
	struct stack_at *below; /* runs, with the nodes that they hang from */
	VEC(struct stack_at) inner; /* nodes within a run where a stack ends, with the stack */
};

static int by_node(const void *a, const void *b)
{
	const struct stack_at *x = a, *y = b;

	return (x->node > y->node) - (x->node < y->node);
}

/* Deepest node first; at one node the oldest first. */
static int by_depth(const void *a, const void *b)
{
	const struct stack_at *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? 1 : -1;
	return (x->run > y->run) - (x->run < y->run);
}

static int list_inner(const struct stacks *s, struct ordering *o)
{
	for (uint32_t n = 1; s->inner.count && n < s->ends.count; n++) {
		struct stack_at end = stacks_end(s, n);

		if (end.node + 1 < stacks_run_end(s, end.run) &&
		    vec_push(&o->inner, (struct stack_at){end.node, n}))
			return -ENOMEM;
	}
	if (o->inner.count)
		qsort(o->inner.items, o->inner.count, sizeof(*o->inner.items), by_node);
	return 0;
}

static void list_below(const struct stacks *s, struct ordering *o)
{
	size_t count = s->runs.count;

	for (size_t n = 1; n < count; n++)
		o->begin[s->runs.items[n].above + 1]++;
	for (size_t n = 1; n <= count; n++)
		o->begin[n] += o->begin[n - 1];
	/* Each start moves as it is filled, and ends where the next one began. */
	for (uint32_t n = 1; n < count; n++) {
		const struct stack_run *run = &s->runs.items[n];

		o->below[o->begin[run->above]++] =
		    (struct stack_at){stacks_run_parent(s, n).node, n};
	}
	memmove(o->begin + 1, o->begin, count * sizeof(*o->begin));
	o->begin[0] = 0;
	for (size_t n = 0; n < count; n++)
		if (o->begin[n + 1] - o->begin[n] > 1)
			qsort(o->below + o->begin[n], o->begin[n + 1] - o->begin[n],
			    sizeof(*o->below), by_depth);
}

/* A run comes after the one that it hangs from, so each direction is one pass. */
static void put_in_order(const struct stacks *s, struct ordering *o, uint32_t *order)
{
	size_t inner = 0;

	for (uint32_t n = 1; n < s->ends.count; n++) {
		struct stack_at end = stacks_end(s, n);

		o->place[end.run]++;
		if (end.node + 1 == stacks_run_end(s, end.run))
			o->stack[end.run] = n;
	}
	for (size_t n = s->runs.count; n-- > 1;)
		o->place[s->runs.items[n].above] += o->place[n];
	o->place[0] = 0;
	for (uint32_t n = 0; n < s->runs.count; n++) {
		uint32_t at = o->place[n], end = stacks_run_end(s, n);

		for (; inner < o->inner.count && o->inner.items[inner].node < end; inner++)
			order[at++] = o->inner.items[inner].run;
		if (o->stack[n])
			order[at++] = o->stack[n];
		for (uint32_t i = o->begin[n]; i < o->begin[n + 1]; i++) {
			uint32_t *place = &o->place[o->below[i].run], of_branch = *place;

			*place = at;
			at += of_branch;
		}
	}
}

static int make_order(struct stacks *s, struct ordering *o)
{
	uint32_t *made = malloc(s->ends.count * sizeof(*made));

	o->place = calloc(s->runs.count, sizeof(*o->place));
	o->stack = calloc(s->runs.count, sizeof(*o->stack));
	o->begin = calloc(s->runs.count + 1, sizeof(*o->begin));
	o->below = malloc(s->runs.count * sizeof(*o->below));
	if (!made || !o->place || !o->stack || !o->begin || !o->below || list_inner(s, o)) {
		free(made);
		return -ENOMEM;
	}
	list_below(s, o);
	put_in_order(s, o, made);
	free(s->order);
	s->order = made;
	s->order_count = s->ends.count - 1;
	return 0;
}

int stacks_order(struct stacks *s, const uint32_t **order, size_t *count)
{
	struct ordering o = {0};
	int r = 0;

	if (!s->order || s->order_count != s->ends.count - 1)
		r = make_order(s, &o);
	free(o.place);
	free(o.stack);
	free(o.begin);
	free(o.below);
	vec_free(&o.inner);
	if (r)
		return r;
	*order = s->order;
	*count = s->order_count;
	return 0;
}
