/*
 * stacks.h - distinct stacks: a tree of frames, root first, in which equal stacks end at the same
 * node. The file's own stack ids are any numbers; the canonical ones are dense, from 1.
 */
#ifndef ANALYZER_TRACE_STACKS_H
#define ANALYZER_TRACE_STACKS_H

#include "trace/trace.h"
#include "util/consecutive.h"
#include "util/map.h"
#include "util/vec.h"

#define STACK_DEPTH_MAX 65000u /* deeper definitions are refused: the recorder cuts far earlier */

/*
 * Most nodes have one child, made right after them. So nodes lie in runs, each the only child of
 * the one before it in the array or a later one of several: what is known of a node is its frame, 4
 * bytes, and the rest is known of the run.
 */
struct stack_run {
	uint32_t first; /* its nodes: from here to the first of the next run */
	uint32_t above; /* the run that the first one hangs from: its node of the depth before */
	uint32_t numbers; /* where those of its nodes' frames begin in `numbers` */
	uint16_t depth; /* of its first node */
} __attribute__((packed, aligned(2))); /* there may be one for each stack */

/* Nodes. The way to one is found from the first of its run, so that this should not be far. */
#define STACK_RUN_MOST 128u

/* What of a run is only asked for while it may be looked for. */
struct stack_begin {
	uint64_t way; /* to its first node */
	uint32_t jump; /* a run farther up: any depth is reached in few steps */
	uint32_t stack; /* that ends at its last node; 0: none, and it may still grow */
	uint16_t level; /* runs above it */
} __attribute__((packed, aligned(2)));

/* Of the table: a run, and the upper half of its way, which alone says where it lies: when the
 * table grows, it is read and written from end to end, and nothing else is looked at. */
struct stack_place {
	uint32_t run; /* 0: free */
	uint32_t tag;
};

/* A node, and the run that it lies in. The root, which is no frame, is node 0 in run 0. */
struct stack_at {
	uint32_t node, run;
};

struct stacks {
	VEC(struct frame) frames; /* distinct ones */
	uint32_t *frame_table; /* by hash: index into them, plus 1 */
	size_t frame_table_size;
	/* The numbers of the nodes' frames: one for each node, until stacks_close() has those runs
	 * share them that have the same ones. */
	VEC(uint32_t) numbers;
	uint32_t nodes;
	VEC(struct stack_run) runs;
	/*
	 * The way to a node is a hash of all frames from the root to it. By its way a run is found
	 * at once, however many lie above it. 64 seeded bits are taken for the frames themselves: a
	 * recorder knows its stacks by not much more.
	 */
	uint64_t secret[2];
	VEC(struct stack_begin) begins; /* of each run */
	struct stack_place *table; /* runs by their ways */
	size_t table_size;
	uint64_t *sieve; /* a byte for a place, two bits of each way in the table set: small enough
			    to ask first */
	struct map inner; /* nodes that are not the last of their run: the stack that ends there */
	VEC(struct stack_at) inner_ends; /* these nodes */
	VEC(uint32_t) ends; /* of each canonical stack: see stacks_end() */
	struct consecutive closed_ends; /* the same after stacks_close(), where `ends` has none */
	uint64_t plain; /* ids of the file below this are canonical themselves */
	uint32_t *dense; /* the file's id to its canonical one, plus 1; 0: not defined */
	size_t dense_count, dense_limit;
	struct map sparse; /* the same of ids that are no index */
	struct frame *scratch;
	size_t scratch_count;
	uint32_t *order; /* see stacks_order(); NULL: not asked for */
	size_t order_count;
};

/* `id_limit`: no well-formed file of this size has ids above it, so that much may be indexed. */
int stacks_init(struct stacks *s, uint64_t id_limit);
void stacks_fini(struct stacks *s);

/* The number of a node's frame. */
static inline uint32_t stacks_number(const struct stacks *s, struct stack_at at)
{
	const struct stack_run *run = &s->runs.items[at.run];

	return s->numbers.items[run->numbers + (at.node - run->first)];
}

static inline const struct frame *stacks_frame(const struct stacks *s, struct stack_at at)
{
	return &s->frames.items[stacks_number(s, at)];
}

/* Behind the last node of a run. */
static inline uint32_t stacks_run_end(const struct stacks *s, uint32_t run)
{
	return run + 1 < s->runs.count ? s->runs.items[run + 1].first : s->nodes;
}

/* The node that the first of a run hangs from, which is not the root's. */
static inline struct stack_at stacks_run_parent(const struct stacks *s, uint32_t run)
{
	uint32_t above = s->runs.items[run].above;
	const struct stack_run *of = &s->runs.items[above];

	return (struct stack_at){of->first + (s->runs.items[run].depth - 1u - of->depth), above};
}

/* Of `ends`: the run that the stack ends with, or this and an index into `inner_ends`. */
#define STACK_INNER 0x80000000u
/* Where a canonical stack ends. */
static inline struct stack_at stacks_end(const struct stacks *s, uint32_t stack)
{
	uint32_t end =
	    s->ends.items ? s->ends.items[stack] : consecutive_at(&s->closed_ends, stack);

	return end & STACK_INNER ? s->inner_ends.items[end & ~STACK_INNER]
				 : (struct stack_at){stacks_run_end(s, end) - 1, end};
}

static inline uint32_t stacks_depth(const struct stacks *s, struct stack_at at)
{
	return s->runs.items[at.run].depth + (at.node - s->runs.items[at.run].first);
}

static inline struct stack_at stacks_parent(const struct stacks *s, struct stack_at at)
{
	const struct stack_run *run = &s->runs.items[at.run];

	return at.node > run->first ? (struct stack_at){at.node - 1, at.run}
				    : stacks_run_parent(s, at.run);
}

static inline bool stacks_same_frame(const struct frame *a, const struct frame *b)
{
	return a->address == b->address && a->module == b->module && a->kind == b->kind &&
	       a->exact == b->exact;
}

/* The number of a frame, plus 1, given to it at first sight; 0: no memory. */
uint32_t stacks_intern(struct stacks *s, const struct frame *frame);
/* The way to the node of a frame under one. */
static inline uint64_t stacks_way_on(const struct stacks *s, uint64_t way, uint32_t number)
{
	__extension__ typedef unsigned __int128 wide;
	/* Seeded, so that nobody can choose frames whose ways collide. */
	wide product = (wide)(way ^ s->secret[0]) * (number ^ s->secret[1]);

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}
uint64_t stacks_way(const struct stacks *s, struct stack_at at);
static inline uint32_t stacks_tag(uint64_t way)
{
	return (uint32_t)(way >> 32);
}
/* Where the table is looked into first for a way: one of `table_size` places, and then the next. */
static inline const struct stack_place *stacks_place(const struct stacks *s, uint64_t way)
{
	return &s->table[stacks_tag(way) & (s->table_size - 1)];
}
/* Of the sieve: two bits of one word, or one. */
static inline uint64_t stacks_sieve_bits(uint32_t tag)
{
	return 1ull << (tag >> 20 & 63) | 1ull << (tag >> 26);
}
static inline uint64_t *stacks_sieve_word(const struct stacks *s, uint32_t tag)
{
	return &s->sieve[tag & (s->table_size / 8 - 1)];
}
/* False: no run begins there. */
static inline bool stacks_maybe(const struct stacks *s, uint64_t way)
{
	uint32_t tag = stacks_tag(way);

	return !(stacks_sieve_bits(tag) & ~*stacks_sieve_word(s, tag));
}
/* The run that is likely to begin there, which no other memory is looked into for; 0: none does. */
static inline uint32_t stacks_likely(const struct stacks *s, uint64_t way)
{
	uint32_t tag = stacks_tag(way);
	size_t mask = s->table_size - 1, i = tag & mask;

	while (s->table[i].run && s->table[i].tag != tag)
		i = (i + 1) & mask;
	return s->table[i].run;
}
/* Whether the first node of a run has that way and depth. */
static inline bool stacks_begins(const struct stacks *s, uint32_t run, uint64_t way, uint64_t depth)
{
	return s->begins.items[run].way == way && s->runs.items[run].depth == depth;
}
/* Down its run as far as that has these frames: how many. */
static inline size_t stacks_along(
    const struct stacks *s, struct stack_at *at, const uint32_t *numbers, size_t count)
{
	const uint32_t *next = s->numbers.items + at->node + 1;
	size_t n = stacks_run_end(s, at->run) - at->node - 1, i = 0;

	if (n > count)
		n = count;
	while (i < n && next[i] == numbers[i])
		i++;
	at->node += (uint32_t)i;
	return i;
}
/* Leads `at` to the node that many frames under it, made when new; `ways` are those to each of
 * them. 0, -ENOMEM, or 1: too deep. */
int stacks_lead(struct stacks *s, struct stack_at *at, const uint32_t *numbers,
    const uint64_t *ways, size_t count);
/* The ancestor of a node (or itself) with that depth, which is not greater than the node's own. Not
 * after stacks_close(). */
struct stack_at stacks_ancestor(const struct stacks *s, struct stack_at at, uint32_t depth);
/* The file's id `raw` is the stack that ends there. 0, -EEXIST when it was defined before. */
int stacks_define(struct stacks *s, uint64_t raw, struct stack_at at);
/* Whether it is the id of any. */
bool stacks_known(const struct stacks *s, uint64_t raw);
/* Where the stack of the file's id ends; false: not defined. */
bool stacks_defined(const struct stacks *s, uint64_t raw, struct stack_at *at);

/* Asks for what stacks_defined() and stacks_ancestor() will look at, in so many steps, from 0 on:
 * each of them looks at what the one before asked for. */
#define STACKS_END_STEPS 4u
void stacks_ask_for_end(const struct stacks *s, uint64_t raw, unsigned step);

/* What only definitions need is given back. */
void stacks_drop_search(struct stacks *s);
/* No more are defined: what only that needs is given back, and the rest is packed. */
void stacks_close(struct stacks *s);

uint32_t stacks_slow(const struct stacks *s, uint64_t raw);
bool stacks_is_defined(const struct stacks *s, uint64_t raw); /* the file's id */
/* The canonical id of the file's id, 0 when that is not defined. */
static inline uint32_t stacks_canonical(const struct stacks *s, uint64_t raw)
{
	if (raw < s->plain)
		return (uint32_t)raw;
	return raw < s->dense_count ? s->dense[raw] - (s->dense[raw] != 0) : stacks_slow(s, raw);
}

size_t stacks_frames(struct stacks *s, uint32_t stack, const struct frame **frames);

/* All canonical ids but 0 in the order of the tree: each stack beside those that it shares most
 * frames with, so that who looks at all of them sees each node once. Kept. 0 or -ENOMEM. */
int stacks_order(struct stacks *s, const uint32_t **order, size_t *count);

#endif
