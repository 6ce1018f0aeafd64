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
 * Most nodes have one child, made right after them. So nodes lie in runs: each node of a run but
 * the first is a child of the one before it. A node stores only its frame, in 4 bytes; depth,
 * parent and stack id belong to the run.
 */
struct stack_run {
	uint32_t first; /* its first node; the next run begins behind its last */
	uint32_t above; /* the run that holds the parent of the first node */
	uint32_t numbers; /* index in `numbers` of its first frame */
	uint16_t depth; /* of its first node */
} __attribute__((packed, aligned(2))); /* there may be one for each stack */

/* Nodes in a run at most: the way to a node is computed from the first of its run. */
#define STACK_RUN_MOST 128u

/* What a run needs only while stacks are being defined. */
struct stack_begin {
	uint64_t way; /* of its first node */
	uint32_t jump; /* a run farther up, to reach any depth in few steps */
	uint32_t stack; /* that ends at its last node; 0: none, so the run may grow */
	uint16_t level; /* runs above it */
} __attribute__((packed, aligned(2)));

/* An entry of the hash table: a run, and the upper half of its way, which is its hash. So the table
 * grows without a look at anything else. */
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
	/* Frame numbers, one for each node; after stacks_close() equal runs share theirs. */
	VEC(uint32_t) numbers;
	uint32_t nodes;
	VEC(struct stack_run) runs;
	/*
	 * The way of a node is a seeded 64-bit hash of all frames from the root to it. It finds a
	 * run in one lookup at any depth, and is taken for the frames themselves.
	 */
	uint64_t secret[2];
	VEC(struct stack_begin) begins; /* one for each run */
	struct stack_place *table; /* runs by way */
	size_t table_size;
	uint64_t *sieve; /* Bloom filter before the table: a byte an entry, two bits a way */
	struct map inner; /* stacks that end within a run, by node */
	VEC(struct stack_at) inner_ends; /* these nodes */
	VEC(uint32_t) ends; /* last node of each canonical stack: see stacks_end() */
	struct consecutive closed_ends; /* after stacks_close(), in place of `ends` */
	uint64_t plain; /* ids of the file below this are canonical themselves */
	VEC(uint32_t) dense; /* the file's id to its canonical one, plus 1; 0: not defined */
	size_t dense_limit;
	struct map sparse; /* the same, for ids too large for an index */
	VEC(struct frame) scratch;
	uint32_t *order; /* see stacks_order(); NULL: not made */
	size_t order_count;
};

/* `id_limit`: the largest id that a sound file of this size can have; ids up to it are indexed. */
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

/* The parent of the first node of a run other than the root's. */
static inline struct stack_at stacks_run_parent(const struct stacks *s, uint32_t run)
{
	uint32_t above = s->runs.items[run].above;
	const struct stack_run *of = &s->runs.items[above];

	return (struct stack_at){of->first + (s->runs.items[run].depth - 1u - of->depth), above};
}

/* An element of `ends` is a run, at whose last node the stack ends; or this bit and an index into
 * `inner_ends`. */
#define STACK_INNER 0x80000000u
/* The last node of a canonical stack. */
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

/* The number of a frame, plus 1; a new frame gets the next. 0: no memory. */
uint32_t stacks_intern(struct stacks *s, const struct frame *frame);
/* The way of the child of a node for a frame. */
static inline uint64_t stacks_way_on(const struct stacks *s, uint64_t way, uint32_t number)
{
	__extension__ typedef unsigned __int128 wide;
	/* Seeded, so that no input can choose frames whose ways collide. */
	wide product = (wide)(way ^ s->secret[0]) * (number ^ s->secret[1]);

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}
uint64_t stacks_way(const struct stacks *s, struct stack_at at);
static inline uint32_t stacks_tag(uint64_t way)
{
	return (uint32_t)(way >> 32);
}
/* The first entry to probe for a way; the following ones are next. */
static inline const struct stack_place *stacks_place(const struct stacks *s, uint64_t way)
{
	return &s->table[stacks_tag(way) & (s->table_size - 1)];
}
/* The bits of a way in its word of the sieve: two, or one. */
static inline uint64_t stacks_sieve_bits(uint32_t tag)
{
	return 1ull << (tag >> 20 & 63) | 1ull << (tag >> 26);
}
static inline uint64_t *stacks_sieve_word(const struct stacks *s, uint32_t tag)
{
	return &s->sieve[tag & (s->table_size / 8 - 1)];
}
/* False: no run begins with this way. */
static inline bool stacks_may_begin(const struct stacks *s, uint64_t way)
{
	uint32_t tag = stacks_tag(way);

	return !(stacks_sieve_bits(tag) & ~*stacks_sieve_word(s, tag));
}
/* The run that probably begins with this way, by the table alone; 0: none does. */
static inline uint32_t stacks_find_run(const struct stacks *s, uint64_t way)
{
	uint32_t tag = stacks_tag(way);
	size_t mask = s->table_size - 1, i = tag & mask;

	while (s->table[i].run && s->table[i].tag != tag)
		i = (i + 1) & mask;
	return s->table[i].run;
}
/* True: the first node of the run has that way and depth. */
static inline bool stacks_begins(const struct stacks *s, uint32_t run, uint64_t way, uint64_t depth)
{
	return s->begins.items[run].way == way && s->runs.items[run].depth == depth;
}
/* Move `at` down its run while the frames are these. Returns how many matched. */
static inline size_t stacks_match_run(
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
/* Move `at` down by `count` frames and add the nodes that are new; `ways` has each node's way. 0;
 * 1: too deep; -ENOMEM. */
int stacks_descend(struct stacks *s, struct stack_at *at, const uint32_t *numbers,
    const uint64_t *ways, size_t count);
/* The ancestor of a node at a depth no greater than its own. Not after stacks_close(). */
struct stack_at stacks_ancestor(const struct stacks *s, struct stack_at at, uint32_t depth);
/* Define the file's id `raw` as the stack that ends at `at`. 0; -EEXIST: defined before; -ENOMEM.
 */
int stacks_define(struct stacks *s, uint64_t raw, struct stack_at at);
/* True: the file defines this id. */
bool stacks_is_defined(const struct stacks *s, uint64_t raw);
/* Give the last node of the file's id. False: not defined. */
bool stacks_defined(const struct stacks *s, uint64_t raw, struct stack_at *at);

/* Prefetches for stacks_defined() and stacks_ancestor(), in steps from 0 on; each step reads what
 * the one before prefetched. */
#define STACKS_PREFETCH_STEPS 4u
void stacks_prefetch_end(const struct stacks *s, uint64_t raw, unsigned step);

/* Free what only lookups of definitions need. */
void stacks_drop_search(struct stacks *s);
/* End the definitions: free what only they need, and pack the rest. */
void stacks_close(struct stacks *s);

uint32_t stacks_canonical_slow(const struct stacks *s, uint64_t raw);
/* The canonical id of the file's id, 0 when that is not defined. */
static inline uint32_t stacks_canonical(const struct stacks *s, uint64_t raw)
{
	if (raw < s->plain)
		return (uint32_t)raw;
	return raw < s->dense.count ? s->dense.items[raw] - (s->dense.items[raw] != 0)
				    : stacks_canonical_slow(s, raw);
}

size_t stacks_frames(struct stacks *s, uint32_t stack, const struct frame **frames);

/* All canonical ids but 0 in the order of the tree, so that neighbours share most frames and a walk
 * visits each node once. Cached. 0 or -ENOMEM. */
int stacks_order(struct stacks *s, const uint32_t **order, size_t *count);

#endif
