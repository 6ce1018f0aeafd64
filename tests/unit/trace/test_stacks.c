#include <errno.h>

#include "trace/stacks.h"
#include "unit.h"

static size_t dice(uint64_t *seed, size_t below)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return (*seed >> 33) % below;
}

static uint32_t push(struct stacks *s, uint32_t node, uint64_t address)
{
	struct frame f = {.kind = FRAME_NATIVE, .address = address};

	return stacks_node(s, node, &f);
}

static void equal_frames_are_one_node(void **state)
{
	struct stacks s;
	struct frame f = {.kind = FRAME_NATIVE, .address = 5}, g = f;
	uint32_t a, b;

	assert_int_equal(stacks_init(&s, 100), 0);
	a = push(&s, push(&s, 0, 1), 2);
	b = push(&s, push(&s, 0, 1), 2);
	assert_int_equal(a, b);
	assert_int_not_equal(a, push(&s, push(&s, 0, 2), 2));
	b = stacks_node(&s, a, &f);
	g.exact = true;
	assert_int_not_equal(b, stacks_node(&s, a, &g));
	g = f;
	g.kind = FRAME_PYTHON;
	assert_int_not_equal(b, stacks_node(&s, a, &g));
	g = f;
	g.module = 1;
	assert_int_not_equal(b, stacks_node(&s, a, &g));
	assert_int_equal(b, stacks_node(&s, a, &f));
	stacks_fini(&s);
}

/* However chains branch: a node of the same parent and frame is found again. */
static void every_node_is_found_again(void **state)
{
	static uint32_t parents[20000], nodes[20000], addresses[20000];
	struct stacks s;
	uint64_t seed = 7;
	uint32_t at = 0;
	size_t distinct;

	assert_int_equal(stacks_init(&s, 100), 0);
	for (int i = 0; i < 20000; i++) {
		if (dice(&seed, 4) == 0)
			at = (uint32_t)dice(&seed, s.count);
		parents[i] = at;
		addresses[i] = (uint32_t)dice(&seed, 8);
		at = nodes[i] = push(&s, at, addresses[i]);
		assert_int_not_equal(at, 0);
		assert_int_equal(s.nodes[at].parent, parents[i]);
		assert_int_equal(stacks_frame(&s, at)->address, addresses[i]);
	}
	distinct = s.count;
	assert_in_range(distinct, 1000, 19999); /* some were there before, some not */
	for (int i = 0; i < 20000; i++)
		assert_int_equal(push(&s, parents[i], addresses[i]), nodes[i]);
	assert_int_equal(s.count, distinct);
	stacks_fini(&s);
}

static void ancestors_at_any_depth(void **state)
{
	static uint32_t at[STACK_DEPTH_MAX + 1];
	struct stacks s;

	assert_int_equal(stacks_init(&s, 100), 0);
	for (uint32_t d = 1; d <= STACK_DEPTH_MAX; d++) {
		at[d] = push(&s, at[d - 1], d * 3);
		assert_int_not_equal(at[d], 0);
	}
	assert_int_equal(push(&s, at[STACK_DEPTH_MAX], 1), 0); /* too deep */
	for (uint32_t d = 0; d <= STACK_DEPTH_MAX; d += 61)
		for (uint32_t to = 0; to <= d; to += 1009)
			assert_int_equal(stacks_ancestor(&s, at[d], to), at[to]);
	stacks_fini(&s);
}

static void ids_are_dense_whatever_the_file_says(void **state)
{
	static const uint64_t raw[] = {7, 3, 1ull << 40, UINT64_MAX, 99, 100, 101};
	struct stacks s;
	const struct frame *frames;
	uint32_t node;

	assert_int_equal(stacks_init(&s, 100), 0);
	for (uint32_t i = 0; i < 7; i++) {
		node = push(&s, push(&s, 0, 50), i + 1);
		assert_int_equal(stacks_define(&s, raw[i], node), 0);
		assert_int_equal(stacks_define(&s, raw[i], node), -EEXIST);
	}
	assert_int_equal(s.end_count, 8);
	for (uint32_t i = 0; i < 7; i++) {
		assert_int_equal(stacks_canonical(&s, raw[i]), i + 1);
		assert_int_equal(stacks_frames(&s, i + 1, &frames), 2);
		assert_int_equal(frames[0].address, 50);
		assert_int_equal(frames[1].address, i + 1);
	}
	/* The same frames under another id, and no frames at all. */
	assert_int_equal(stacks_define(&s, 50, push(&s, push(&s, 0, 50), 3)), 0);
	assert_int_equal(stacks_canonical(&s, 50), 3);
	assert_int_equal(stacks_define(&s, 51, 0), 0);
	assert_int_equal(stacks_canonical(&s, 51), 0);
	assert_int_equal(s.end_count, 8);
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
	/* Stack 1 lies inside of 2 and 4, 3 apart; each was defined when another branch had begun.
	 */
	static const uint32_t expected[] = {1, 2, 4, 3};
	struct stacks s;
	const uint32_t *order;
	uint32_t a, b, c;
	size_t count;

	assert_int_equal(stacks_init(&s, 1000), 0);
	assert_int_equal(stacks_order(&s, &order, &count), 0);
	assert_int_equal(count, 0);
	a = push(&s, 0, 1);
	assert_int_equal(stacks_define(&s, 10, a), 0);
	b = push(&s, push(&s, a, 2), 3);
	assert_int_equal(stacks_define(&s, 11, b), 0);
	c = push(&s, push(&s, 0, 9), 3);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(equal_frames_are_one_node),
	    cmocka_unit_test(ancestors_at_any_depth),
	    cmocka_unit_test(every_node_is_found_again),
	    cmocka_unit_test(ids_are_dense_whatever_the_file_says),
	    cmocka_unit_test(order_of_the_tree),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
