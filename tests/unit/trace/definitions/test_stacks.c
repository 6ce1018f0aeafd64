#include <errno.h>
#include <string.h>

#include "../../util/unit.h"
#include "trace/definitions/stacks.h"

static size_t dice(uint64_t *seed, size_t below)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return (*seed >> 33) % below;
}

#define ROOT ((struct stack_at){0, 0})

static int lead(struct stacks *s, struct stack_at *at, const struct frame *frame)
{
	uint32_t number = stacks_intern(s, frame);
	uint64_t way;

	assert_int_not_equal(number--, 0);
	way = stacks_way_on(s, stacks_way(s, *at), number);
	return stacks_descend(s, at, &number, &way, 1);
}

static struct stack_at below(struct stacks *s, struct stack_at at, const struct frame *frame)
{
	assert_int_equal(lead(s, &at, frame), 0);
	return at;
}

static struct stack_at push(struct stacks *s, struct stack_at at, uint64_t address)
{
	return below(s, at, &(struct frame){.kind = FRAME_NATIVE, .address = address});
}

static void equal_frames_are_one_node(void **state)
{
	struct stacks s;
	struct frame f = {.kind = FRAME_NATIVE, .address = 5}, g = f;
	struct stack_at a, b;

	assert_int_equal(stacks_init(&s, 100), 0);
	a = push(&s, push(&s, ROOT, 1), 2);
	b = push(&s, push(&s, ROOT, 1), 2);
	assert_int_equal(a.node, b.node);
	assert_int_equal(a.run, b.run);
	assert_int_not_equal(a.node, push(&s, push(&s, ROOT, 2), 2).node);
	b = below(&s, a, &f);
	g.exact = true;
	assert_int_not_equal(b.node, below(&s, a, &g).node);
	g = f;
	g.kind = FRAME_PYTHON;
	assert_int_not_equal(b.node, below(&s, a, &g).node);
	g = f;
	g.module = 1;
	assert_int_not_equal(b.node, below(&s, a, &g).node);
	assert_int_equal(b.node, below(&s, a, &f).node);
	/* Numbers are given once. */
	assert_int_equal(stacks_intern(&s, &g), s.frames.count);
	stacks_fini(&s);
}

/* However chains branch: a node of the same parent and frame is found again. */
static void every_node_is_found_again(void **state)
{
	static struct stack_at parents[20000], nodes[20000];
	static uint32_t addresses[20000];
	struct stacks s;
	uint64_t seed = 7;
	struct stack_at at = ROOT;
	size_t distinct;

	assert_int_equal(stacks_init(&s, 100), 0);
	for (int i = 0; i < 20000; i++) {
		if (i && dice(&seed, 4) == 0)
			at = nodes[dice(&seed, (size_t)i)];
		/* A run that a stack ends at does not grow. */
		if (dice(&seed, 4) == 0)
			assert_int_equal(stacks_define(&s, (uint64_t)i + 1, at), 0);
		parents[i] = at;
		addresses[i] = (uint32_t)dice(&seed, 8);
		at = nodes[i] = push(&s, at, addresses[i]);
		assert_int_equal(stacks_parent(&s, at).node, parents[i].node);
		assert_int_equal(stacks_parent(&s, at).run, parents[i].run);
		assert_int_equal(stacks_depth(&s, at), stacks_depth(&s, parents[i]) + 1);
		assert_int_equal(stacks_frame(&s, at)->address, addresses[i]);
	}
	distinct = s.nodes;
	assert_in_range(distinct, 1000, 19999); /* some were there before, some not */
	for (int i = 0; i < 20000; i++)
		assert_int_equal(push(&s, parents[i], addresses[i]).node, nodes[i].node);
	assert_int_equal(s.nodes, distinct);
	stacks_fini(&s);
}

static void ancestors_at_any_depth(void **state)
{
	static struct stack_at at[STACK_DEPTH_MAX + 1];
	struct frame f = {.kind = FRAME_NATIVE, .address = 1};

	/* One run; one for each few nodes; one for each. */
	for (uint32_t every = 0; every <= 7; every = every ? every * 7 : 1) {
		struct stacks s;
		struct stack_at deepest;

		assert_int_equal(stacks_init(&s, 100), 0);
		for (uint32_t d = 1; d <= STACK_DEPTH_MAX; d++) {
			at[d] = push(&s, at[d - 1], d * 3);
			if (every && d % every == 0)
				assert_int_equal(stacks_define(&s, d, at[d]), 0);
		}
		deepest = at[STACK_DEPTH_MAX];
		assert_int_equal(lead(&s, &deepest, &f), 1); /* too deep */
		for (uint32_t d = 0; d <= STACK_DEPTH_MAX; d += 61)
			for (uint32_t to = 0; to <= d; to += 1009) {
				struct stack_at found = stacks_ancestor(&s, at[d], to);

				assert_int_equal(found.node, at[to].node);
				assert_int_equal(found.run, at[to].run);
			}
		stacks_fini(&s);
	}
}

static void ids_are_dense_whatever_the_file_says(void **state)
{
	static const uint64_t raw[] = {7, 3, 1ull << 40, UINT64_MAX, 99, 100, 101};
	struct stacks s;
	const struct frame *frames;
	struct stack_at node;

	assert_int_equal(stacks_init(&s, 100), 0);
	for (uint32_t i = 0; i < 7; i++) {
		node = push(&s, push(&s, ROOT, 50), i + 1);
		assert_int_equal(stacks_define(&s, raw[i], node), 0);
		assert_int_equal(stacks_define(&s, raw[i], node), -EEXIST);
	}
	assert_int_equal(s.ends.count, 8);
	for (uint32_t i = 0; i < 7; i++) {
		assert_int_equal(stacks_canonical(&s, raw[i]), i + 1);
		assert_int_equal(stacks_frames(&s, i + 1, &frames), 2);
		assert_int_equal(frames[0].address, 50);
		assert_int_equal(frames[1].address, i + 1);
	}
	/* The same frames under another id, and no frames at all. */
	assert_int_equal(stacks_define(&s, 50, push(&s, push(&s, ROOT, 50), 3)), 0);
	assert_int_equal(stacks_canonical(&s, 50), 3);
	assert_int_equal(stacks_define(&s, 51, ROOT), 0);
	assert_int_equal(stacks_canonical(&s, 51), 0);
	assert_int_equal(s.ends.count, 8);
	assert_int_equal(stacks_canonical(&s, 52), 0);
	assert_int_equal(stacks_canonical(&s, 1ull << 41), 0);
	assert_true(stacks_defined(&s, 51, &node));
	assert_false(stacks_defined(&s, 52, &node));
	assert_int_equal(stacks_frames(&s, 0, &frames), 0);
	assert_int_equal(stacks_frames(&s, 1000, &frames), 0);
	stacks_fini(&s);
}

static void order_of_the_tree(void **state)
{
	/* Stack 1 lies inside of 2 and 4, 3 apart; each was defined when another branch had
	 * begun. */
	static const uint32_t expected[] = {1, 2, 4, 3};
	struct stacks s;
	const uint32_t *order;
	struct stack_at a, b, c;
	size_t count;

	assert_int_equal(stacks_init(&s, 1000), 0);
	assert_int_equal(stacks_order(&s, &order, &count), 0);
	assert_int_equal(count, 0);
	a = push(&s, ROOT, 1);
	assert_int_equal(stacks_define(&s, 10, a), 0);
	b = push(&s, push(&s, a, 2), 3);
	assert_int_equal(stacks_define(&s, 11, b), 0);
	c = push(&s, push(&s, ROOT, 9), 3);
	assert_int_equal(stacks_define(&s, 12, c), 0);
	assert_int_equal(stacks_order(&s, &order, &count), 0);
	assert_int_equal(count, 3);
	assert_int_equal(stacks_define(&s, 13, push(&s, push(&s, a, 2), 7)), 0);
	assert_int_equal(stacks_define(&s, 14, c), 0); /* the same once more */
	assert_int_equal(stacks_order(&s, &order, &count), 0);
	assert_int_equal(count, 4);
	assert_memory_equal(order, expected, sizeof(expected));
	stacks_fini(&s);
}

/* A walk over all stacks in this order meets each node once. */
static void order_of_any_tree(void **state)
{
	static struct frame before[4000];
	struct stacks s;
	struct stack_at at = ROOT;
	const struct frame *frames;
	const uint32_t *order;
	uint64_t seed = 3;
	size_t count, depth = 0, met = 0, inner = 0;
	static bool seen[20001];

	assert_int_equal(stacks_init(&s, 30000), 0);
	for (uint32_t i = 1; i <= 20000; i++) {
		at = stacks_ancestor(&s, at, (uint32_t)dice(&seed, stacks_depth(&s, at) + 1));
		for (size_t n = dice(&seed, 7); n; n--)
			at = push(&s, at, dice(&seed, 3));
		assert_int_equal(stacks_define(&s, i, at), 0);
	}
	assert_int_equal(stacks_order(&s, &order, &count), 0);
	assert_int_equal(count, s.ends.count - 1);
	for (size_t i = 0; i < count; i++) {
		size_t n = stacks_frames(&s, order[i], &frames), same = 0;

		assert_true(order[i] && !seen[order[i]]);
		seen[order[i]] = true;
		assert_in_range(n, 1, 4000);
		while (same < n && same < depth && frames[same].address == before[same].address)
			same++;
		met += n - same;
		inner += stacks_end(&s, order[i]).node + 1 <
			 stacks_run_end(&s, stacks_end(&s, order[i]).run);
		memcpy(before, frames, n * sizeof(*frames));
		depth = n;
	}
	assert_int_equal(met, s.nodes - 1);
	assert_in_range(inner, 100, count); /* stacks that end within a run are among them */
	stacks_fini(&s);
}

/* The frames of all stacks in one number; inner ones with their depths. */
static uint64_t all_frames(struct stacks *s)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->ends.count; i++) {
		const struct frame *frames;
		size_t count = stacks_frames(s, i, &frames);

		sum = sum * 31 + count;
		for (size_t k = 0; k < count; k++)
			sum = sum * 31 + frames[k].address;
	}
	return sum;
}

/* Closed, the tree takes less memory and gives the same answers: with equal runs and with all
 * different; with ids in order and in disorder. */
static void closed_it_says_the_same(void **state)
{
	for (int kind = 0; kind < 4; kind++) {
		bool alike = kind & 1, in_order = kind & 2;
		const uint32_t *order, count = 60000;
		uint32_t *before = malloc(count * sizeof(*before));
		uint64_t seed = 3, sum;
		struct stack_at at, end;
		struct stacks s;
		size_t listed, again;

		assert_non_null(before);
		assert_int_equal(stacks_init(&s, 2 * count), 0);
		for (uint32_t i = 1; i < count; i++) {
			at = push(&s, push(&s, ROOT, 1000 + i / 60), 100 + i % 60);
			for (size_t n = 3; n; n--)
				at = push(&s, at, alike ? n : dice(&seed, 1 << 20));
			/* Some end within a run. */
			if (i % 1000 == 7)
				at = stacks_ancestor(&s, at, stacks_depth(&s, at) - 1);
			assert_int_equal(stacks_define(&s, in_order ? i : 2 * count - i, at), 0);
		}
		assert_int_equal(stacks_order(&s, &order, &listed), 0);
		memcpy(before, order, listed * sizeof(*order));
		s.order_count = 0; /* ask anew */
		sum = all_frames(&s);
		assert_true(s.numbers.count > 4 * (count - 1));
		stacks_close(&s);
		assert_true((s.numbers.count < 10000) == alike);
		assert_true(all_frames(&s) == sum);
		assert_int_equal(stacks_order(&s, &order, &again), 0);
		assert_int_equal(again, listed);
		assert_memory_equal(order, before, listed * sizeof(*order));
		for (uint32_t i = 0; i <= 2 * count; i++) {
			bool known = in_order ? i && i < count : i > count && i < 2 * count;

			assert_int_equal(stacks_is_defined(&s, i), known);
			assert_int_equal(stacks_canonical(&s, i), !known     ? 0
								  : in_order ? i
									     : 2 * count - i);
			assert_int_equal(stacks_defined(&s, i, &end), known);
		}
		assert_null(s.ends.items);
		if (in_order)
			assert_null(s.dense.items);
		free(before);
		stacks_fini(&s);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(equal_frames_are_one_node),
	    cmocka_unit_test(ancestors_at_any_depth),
	    cmocka_unit_test(every_node_is_found_again),
	    cmocka_unit_test(ids_are_dense_whatever_the_file_says),
	    cmocka_unit_test(order_of_the_tree),
	    cmocka_unit_test(order_of_any_tree),
	    cmocka_unit_test(closed_it_says_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
