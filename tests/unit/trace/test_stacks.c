#include <errno.h>

#include "trace/stacks.h"
#include "unit.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(equal_frames_are_one_node),
	    cmocka_unit_test(ancestors_at_any_depth),
	    cmocka_unit_test(ids_are_dense_whatever_the_file_says),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
