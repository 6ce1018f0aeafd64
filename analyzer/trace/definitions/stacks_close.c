/*
 * stacks_close.c - shrinks the finished tree of stacks to the memory that reading it takes; see
 * stacks.h. Nothing fails here: a part stays as it was when there is no memory to shrink it.
 */
#include <stdlib.h>
#include <string.h>

#include "trace/definitions/stacks.h"

/* Runs with the same frames share their numbers. Shared runs are many: the frames between a line
 * and malloc() are the same for many lines. */
struct shared_run {
	uint32_t at; /* index of their numbers; 0: free */
	uint32_t tag; /* of their hash; its low bits are their count */
};

struct sharing {
	VEC(uint32_t) numbers;
	struct shared_run *table; /* by a hash of their numbers */
	size_t size, used;
};

/* If more than half of this many runs are unique, sharing is not worth the time. */
#define SHARE_FIRST 8192u
#define COUNT_BITS 8u
_Static_assert(STACK_RUN_MOST < 1u << COUNT_BITS, "a run's length fits beside the tag");

static inline size_t count_of(const struct shared_run *of)
{
	return of->tag & ((1u << COUNT_BITS) - 1);
}

static inline size_t length_of(const struct stacks *s, uint32_t run)
{
	return stacks_run_end(s, run) - s->runs.items[run].first;
}

static inline uint64_t hash_of(const uint32_t *numbers, size_t count)
{
	return map_hash_bytes(numbers, count * sizeof(*numbers));
}

static bool grow(struct sharing *to)
{
	size_t size = to->size ? to->size * 2 : 4096;
	struct shared_run *table = calloc(size, sizeof(*table));

	if (!table)
		return false;
	for (size_t n = 0; n < to->size; n++) {
		const struct shared_run *of = &to->table[n];
		size_t i;

		if (!of->at)
			continue;
		i = hash_of(to->numbers.items + of->at, count_of(of)) & (size - 1);
		while (table[i].at)
			i = (i + 1) & (size - 1);
		table[i] = *of;
	}
	free(to->table);
	to->table = table;
	to->size = size;
	return true;
}

/* Share the numbers of an equal earlier run, or add new ones. False: no memory. */
static bool share_run(struct stacks *s, struct sharing *to, uint32_t run, uint64_t hash)
{
	const uint32_t *own = s->numbers.items + s->runs.items[run].first;
	size_t count = length_of(s, run), i;
	uint32_t tag = (uint32_t)(hash >> 32) << COUNT_BITS | (uint32_t)count;
	const struct shared_run *other;

	if (to->used >= to->size / 2 && !grow(to))
		return false;
	for (i = hash & (to->size - 1); (other = &to->table[i])->at; i = (i + 1) & (to->size - 1)) {
		if (other->tag == tag &&
		    !memcmp(to->numbers.items + other->at, own, count * sizeof(*own))) {
			s->runs.items[run].numbers = other->at;
			return true;
		}
	}
	if (vec_reserve(&to->numbers, to->numbers.count + count))
		return false;
	memcpy(to->numbers.items + to->numbers.count, own, count * sizeof(*own));
	s->runs.items[run].numbers = (uint32_t)to->numbers.count;
	to->table[i] = (struct shared_run){(uint32_t)to->numbers.count, tag};
	to->numbers.count += count;
	to->used++;
	return true;
}

/* Share the numbers of a few runs at a time, to prefetch their memory. False: no memory. */
#define SHARE_AHEAD 16u

static bool share_some(struct stacks *s, struct sharing *to, uint32_t first, uint32_t end)
{
	uint64_t hash[SHARE_AHEAD];

	for (uint32_t run = first; run < end; run++) {
		const uint32_t *own = s->numbers.items + s->runs.items[run].first;

		hash[run - first] = hash_of(own, length_of(s, run));
		if (to->size)
			__builtin_prefetch(&to->table[hash[run - first] & (to->size - 1)]);
	}
	for (uint32_t run = first; run < end; run++)
		if (!share_run(s, to, run, hash[run - first]))
			return false;
	return true;
}

static void share_numbers(struct stacks *s)
{
	struct sharing to = {0};
	uint32_t end = 1, count = (uint32_t)s->runs.count;
	bool shared = count > SHARE_FIRST && !vec_push(&to.numbers, 0);

	while (shared && end < count) {
		uint32_t first = end;

		end = count - first < SHARE_AHEAD ? count : first + SHARE_AHEAD;
		shared = share_some(s, &to, first, end) &&
			 (first > SHARE_FIRST || to.used < SHARE_FIRST / 2);
	}
	free(to.table);
	if (shared) {
		vec_free(&s->numbers);
		s->numbers.items = to.numbers.items;
		s->numbers.count = to.numbers.count;
		s->numbers.capacity = to.numbers.capacity;
		return;
	}
	vec_free(&to.numbers);
	for (uint32_t i = 1; i < end && i < count; i++)
		s->runs.items[i].numbers = s->runs.items[i].first;
}

/* Most recorders number their stacks from 1, in the order of writing: that needs no table. */
static void leave_plain(struct stacks *s)
{
	size_t n = 1, rest;

	if (!s->dense.count || s->dense.items[0])
		return;
	while (n < s->dense.count && s->dense.items[n] == n + 1)
		n++;
	s->plain = n;
	for (rest = n; rest < s->dense.count && !s->dense.items[rest];)
		rest++;
	if (rest < s->dense.count)
		return;
	vec_free(&s->dense);
}

void stacks_drop_search(struct stacks *s)
{
	free(s->frame_table);
	s->frame_table = NULL;
	free(s->table);
	s->table = NULL;
	free(s->sieve);
	s->sieve = NULL;
	vec_free(&s->begins);
}

void stacks_close(struct stacks *s)
{
	stacks_drop_search(s);
	if (s->ends.items && s->ends.count < UINT32_MAX &&
	    consecutive_init(&s->closed_ends, s->ends.items, (uint32_t)s->ends.count)) {
		free(s->ends.items); /* the count is still needed */
		s->ends.items = NULL;
		s->ends.capacity = 0;
	}
	leave_plain(s);
	share_numbers(s);
}
