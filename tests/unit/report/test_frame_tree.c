/* The tree of a space's stacks: sums, what is cut, and the walk. */
#include "model/unit.h"

#include "report/frame_tree.h"

/* Add a stack of frames, outermost first, up to 0. */
static void add(struct frame_tree *t, const uint32_t *frames, uint64_t bytes)
{
	uint32_t at = 0;

	for (; *frames; frames++)
		assert_int_equal(frame_tree_child(t, at, *frames, &at), 0);
	t->nodes.items[at].sums[0] += bytes;
}

static void make(struct frame_tree *t)
{
	assert_int_equal(frame_tree_init(t, 5), 0);
	add(t, (const uint32_t[]){1, 2, 3, 0}, 600);
	add(t, (const uint32_t[]){1, 2, 4, 0}, 300);
	add(t, (const uint32_t[]){1, 2, 0}, 50);
	add(t, (const uint32_t[]){1, 5, 0}, 30);
	add(t, (const uint32_t[]){1, 6, 7, 0}, 20);
	frame_tree_sum(t);
}

static void test_sums(void **state)
{
	struct frame_tree t = {0};
	uint64_t cut[FRAME_TREE_SUMS];
	const struct frame_node *outer;

	make(&t);
	assert_int_equal(t.nodes.count, 8);
	assert_int_equal(t.nodes.items[0].sums[0], 1000);
	outer = &t.nodes.items[t.nodes.items[0].child];
	assert_int_equal(outer->frame, 1);
	assert_int_equal(outer->sums[0], 1000);
	assert_int_equal(t.nodes.items[outer->child].sums[0], 950);
	/* 5 % keeps the root, 1, 2, 3 and 4; two children of 1 become one. */
	assert_int_equal(frame_tree_keep(&t, 0.05), 5);
	assert_int_equal(frame_tree_cut(&t, outer, cut), 2);
	assert_int_equal(cut[0], 50);
	assert_int_equal(frame_tree_cut(&t, &t.nodes.items[outer->child], cut), 0);
	assert_int_equal(frame_tree_keep(&t, 0), 8);
	frame_tree_fini(&t);
	(void)state;
}

static void test_walk(void **state)
{
	static const uint32_t frames[] = {0, 1, 2, 3, 4, 5, 6, 7},
			      depths[] = {0, 1, 2, 3, 3, 2, 2, 3};
	struct frame_tree t = {0};
	uint32_t at = 0, depth = 0;
	size_t n = 0;

	make(&t);
	do {
		assert_int_equal(t.nodes.items[at].frame, frames[n]);
		assert_int_equal(depth, depths[n++]);
	} while ((at = frame_tree_next(&t, at, true, &depth)));
	assert_int_equal(n, 8);
	/* Past a node's children; past the last. */
	depth = 2;
	at = frame_tree_next(&t, t.nodes.items[1].child, false, &depth);
	assert_int_equal(t.nodes.items[at].frame, 5);
	assert_int_equal(depth, 2);
	depth = 0;
	assert_int_equal(frame_tree_next(&t, 0, false, &depth), 0);
	frame_tree_fini(&t);
	(void)state;
}

static void test_full(void **state)
{
	struct frame_tree t = {0};
	uint32_t known, at;

	assert_int_equal(frame_tree_init(&t, 5), 0);
	assert_int_equal(frame_tree_child(&t, 0, 1, &known), 0);
	for (uint32_t i = 2; t.nodes.count < FRAME_TREE_NODES; i++)
		assert_int_equal(frame_tree_child(&t, known, i, &at), 0);
	/* What is known is found; for others the node itself stands. */
	assert_int_equal(frame_tree_child(&t, 0, 1, &at), 0);
	assert_int_equal(at, known);
	assert_int_equal(frame_tree_child(&t, known, FRAME_TREE_NODES + 7, &at), 0);
	assert_int_equal(at, known);
	assert_int_equal(t.nodes.count, FRAME_TREE_NODES);
	frame_tree_fini(&t);
	(void)state;
}
int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_sums), cmocka_unit_test(test_walk), cmocka_unit_test(test_full)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
