#include "trace/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/vec.h"

int stacks_init(struct stacks *s, uint64_t id_limit)
{
	map_seed();
	*s = (struct stacks){.dense_limit = id_limit < UINT32_MAX ? (size_t)id_limit : UINT32_MAX};
	s->table_size = 1024;
	s->table = calloc(s->table_size, sizeof(*s->table));
	s->frame_table_size = 1024;
	s->frame_table = calloc(s->frame_table_size, sizeof(*s->frame_table));
	if (!s->table || !s->frame_table || vec_push(&s->frames, (struct frame){0}) ||
	    vec_grow((void **)&s->nodes, &s->capacity, 256, sizeof(*s->nodes)) ||
	    vec_grow((void **)&s->ends, &s->end_capacity, 64, sizeof(*s->ends)))
		return -ENOMEM;
	s->nodes[0] = (struct stack_node){0};
	s->ends[0] = 0;
	s->count = s->end_count = 1;
	return 0;
}

void stacks_fini(struct stacks *s)
{
	vec_free(&s->frames);
	free(s->frame_table);
	free(s->nodes);
	free(s->table);
	free(s->ends);
	free(s->dense);
	free(s->far);
	free(s->scratch);
	free(s->order);
	map_free(&s->sparse);
	*s = (struct stacks){0};
}

static bool same_frame(const struct frame *a, const struct frame *b)
{
	return a->address == b->address && a->module == b->module && a->kind == b->kind &&
	       a->exact == b->exact;
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

/* Its index, plus 1; 0: no memory. */
static uint32_t intern_frame(struct stacks *s, const struct frame *frame, uint64_t hash)
{
	size_t mask = s->frame_table_size - 1, i = hash & mask;

	for (; s->frame_table[i]; i = (i + 1) & mask)
		if (same_frame(&s->frames.items[s->frame_table[i] - 1], frame))
			return s->frame_table[i];
	if (s->frames.count >= UINT32_MAX / 2 || vec_push(&s->frames, *frame))
		return 0;
	s->frame_table[i] = (uint32_t)s->frames.count;
	if (s->frames.count > s->frame_table_size / 2 && rehash_frames(s))
		return 0;
	return (uint32_t)s->frames.count;
}

/* Of the frame itself, not of its index: a node that is there is found without that. The frame's
 * hash is seeded, so that nobody can choose parents that make up for it. */
static size_t hash_node(uint32_t parent, uint64_t frame_hash)
{
	uint64_t h = (frame_hash + parent) * 0x9e3779b97f4a7c15ull;

	return h ^ h >> 32;
}

static int rehash(struct stacks *s)
{
	size_t size = s->table_size * 2;
	uint32_t *table = calloc(size, sizeof(*table));

	if (!table)
		return -ENOMEM;
	for (size_t n = 1; n < s->count; n++) {
		size_t i;

		if (s->nodes[n].parent == n - 1)
			continue;
		i = hash_node(s->nodes[n].parent, hash_frame(&s->frames.items[s->nodes[n].frame])) &
		    (size - 1);
		while (table[i])
			i = (i + 1) & (size - 1);
		table[i] = (uint32_t)n;
	}
	free(s->table);
	s->table = table;
	s->table_size = size;
	return 0;
}

static bool is_node(
    const struct stacks *s, uint32_t node, uint32_t parent, const struct frame *frame)
{
	return s->nodes[node].parent == parent &&
	       same_frame(&s->frames.items[s->nodes[node].frame], frame);
}

/* Jumps as in a skew-binary list: their lengths make the way up logarithmic. */
static uint32_t jump_of(const struct stacks *s, uint32_t parent)
{
	const struct stack_node *p = &s->nodes[parent], *jump = &s->nodes[p->jump];

	return p->depth - jump->depth == jump->depth - s->nodes[jump->jump].depth ? jump->jump
										  : parent;
}

uint32_t stacks_node(struct stacks *s, uint32_t parent, const struct frame *frame)
{
	uint32_t own, next = parent + 1;
	bool beside = next == s->count;
	uint64_t hash;
	size_t i = 0;

	if (!beside && is_node(s, next, parent, frame))
		return next;
	hash = hash_frame(frame);
	if (!beside)
		for (i = hash_node(parent, hash) & (s->table_size - 1); s->table[i];
		     i = (i + 1) & (s->table_size - 1))
			if (is_node(s, s->table[i], parent, frame))
				return s->table[i];
	own = intern_frame(s, frame, hash);
	if (!own--)
		return 0;
	if (s->nodes[parent].depth >= STACK_DEPTH_MAX || s->count >= UINT32_MAX / 2)
		return 0;
	if (s->count == s->capacity &&
	    vec_grow((void **)&s->nodes, &s->capacity, s->count + 1, sizeof(*s->nodes)))
		return 0;
	s->nodes[s->count] = (struct stack_node){.parent = parent,
	    .jump = jump_of(s, parent),
	    .frame = own,
	    .depth = (uint16_t)(s->nodes[parent].depth + 1)};
	if (!beside) {
		s->table[i] = (uint32_t)s->count;
		s->table_used++;
	}
	s->count++;
	if (s->table_used > s->table_size / 2 && rehash(s))
		return 0;
	return (uint32_t)(s->count - 1);
}

uint32_t stacks_ancestor(const struct stacks *s, uint32_t node, uint32_t depth)
{
	while (s->nodes[node].depth > depth) {
		uint32_t jump = s->nodes[node].jump;
		node = s->nodes[jump].depth >= depth ? jump : s->nodes[node].parent;
	}
	return node;
}

static struct stack_id *entry_of(const struct stacks *s, uint64_t raw)
{
	uint64_t *far;

	if (raw < s->dense_count)
		return &s->dense[raw];
	far = map_find(&s->sparse, raw);
	return far ? &s->far[*far] : NULL;
}

/* Makes room for the entry of an id. */
static struct stack_id *entry_new(struct stacks *s, uint64_t raw)
{
	struct stack_id *grown;
	uint64_t *far;

	if (raw < s->dense_limit) {
		if (raw >= s->dense_count) {
			size_t count = s->dense_count ? s->dense_count : 1024;
			while (count <= raw)
				count += count / 2;
			grown = realloc(s->dense, count * sizeof(*grown));
			if (!grown)
				return NULL;
			memset(
			    grown + s->dense_count, 0, (count - s->dense_count) * sizeof(*grown));
			s->dense = grown;
			s->dense_count = count;
		}
		return &s->dense[raw];
	}
	if (s->far_count == s->far_capacity &&
	    vec_grow((void **)&s->far, &s->far_capacity, s->far_count + 1, sizeof(*s->far)))
		return NULL;
	far = map_put(&s->sparse, raw);
	if (!far)
		return NULL;
	*far = s->far_count;
	s->far[s->far_count] = (struct stack_id){0};
	return &s->far[s->far_count++];
}

int stacks_define(struct stacks *s, uint64_t raw, uint32_t node)
{
	struct stack_id *entry = entry_of(s, raw);
	uint32_t *stack;

	if (entry && entry->node)
		return -EEXIST;
	if (!entry)
		entry = entry_new(s, raw);
	if (!entry)
		return -ENOMEM;
	stack = &s->nodes[node].stack;
	if (node && !*stack) {
		if (s->end_count == s->end_capacity && vec_grow((void **)&s->ends, &s->end_capacity,
							   s->end_count + 1, sizeof(*s->ends)))
			return -ENOMEM;
		*stack = (uint32_t)s->end_count;
		s->ends[s->end_count++] = node;
	}
	*entry = (struct stack_id){.stack = *stack, .node = node + 1};
	return 0;
}

bool stacks_defined(const struct stacks *s, uint64_t raw, uint32_t *node)
{
	const struct stack_id *entry = entry_of(s, raw);

	if (!entry || !entry->node)
		return false;
	*node = entry->node - 1;
	return true;
}

uint32_t stacks_slow(const struct stacks *s, uint64_t raw)
{
	const struct stack_id *entry = entry_of(s, raw);

	return entry ? entry->stack : 0;
}

size_t stacks_frames(struct stacks *s, uint32_t stack, const struct frame **frames)
{
	uint32_t node = stack < s->end_count ? s->ends[stack] : 0;
	size_t depth = s->nodes[node].depth;

	if (depth > s->scratch_count) {
		struct frame *grown = realloc(s->scratch, (depth + 64) * sizeof(*grown));
		if (!grown)
			return 0;
		s->scratch = grown;
		s->scratch_count = depth + 64;
	}
	for (size_t i = depth; i--; node = s->nodes[node].parent)
		s->scratch[i] = *stacks_frame(s, node);
	*frames = s->scratch;
	return depth;
}

/* How many stacks end in each node's branch, then where the branch's next one goes: a node comes
 * after its parent in the array, so both are one pass over it. */
static void put_in_order(struct stacks *s, uint32_t *of_branch, uint32_t *order)
{
	for (size_t n = s->count; n-- > 1;) {
		of_branch[n] += s->nodes[n].stack != 0;
		of_branch[s->nodes[n].parent] += of_branch[n];
	}
	of_branch[0] = 0;
	for (size_t n = 1; n < s->count; n++) {
		uint32_t *next = &of_branch[s->nodes[n].parent], at = *next;

		*next += of_branch[n];
		of_branch[n] = at;
		if (s->nodes[n].stack)
			order[of_branch[n]++] = s->nodes[n].stack;
	}
}

int stacks_order(struct stacks *s, const uint32_t **order, size_t *count)
{
	uint32_t *of_branch, *made;

	if (!s->order || s->order_count != s->end_count - 1) {
		of_branch = calloc(s->count, sizeof(*of_branch));
		made = malloc(s->end_count * sizeof(*made));
		if (!of_branch || !made) {
			free(of_branch);
			free(made);
			return -ENOMEM;
		}
		put_in_order(s, of_branch, made);
		free(of_branch);
		free(s->order);
		s->order = made;
		s->order_count = s->end_count - 1;
	}
	*order = s->order;
	*count = s->order_count;
	return 0;
}
