/* What each thread, stage and request held, and where. */
#include "model/unit.h"

#include "report/html/work/groups.h"

static struct group_of of_request(uint32_t number)
{
	return (struct group_of){{GROUP_NONE, GROUP_NONE, number}, 1};
}

static const struct work_group *request(const struct groups *g, uint32_t number)
{
	return &g->list[GROUP_REQUEST].items[number];
}

static const struct group_cell *cell(
    const struct groups *g, enum group_kind kind, uint32_t number, uint32_t stack)
{
	for (uint32_t at = g->list[kind].items[number].cells; at; at = g->cells.items[at - 1].next)
		if (g->cells.items[at - 1].stack == stack)
			return &g->cells.items[at - 1];
	return NULL;
}

static void test_sums_and_peaks(void **state)
{
	struct groups g = {0};
	struct group_of both = {{2, GROUP_NONE, 1}, 1}, thread = {{2, GROUP_NONE, GROUP_NONE}, 1};
	const struct group_cell *c;

	assert_int_equal(groups_acquired(&g, &both, 7, 100, 1, 10), 0);
	assert_int_equal(groups_acquired(&g, &both, 8, 50, 2, 20), 0);
	assert_int_equal(groups_released(&g, &both, 7, 100), 0);
	assert_int_equal(groups_temporary(&g, &both, 7, 100), 0);
	assert_int_equal(groups_acquired(&g, &thread, 7, 120, 1, 30), 0);
	groups_take(&g);
	assert_int_equal(groups_released(&g, &thread, 7, 120), 0);
	assert_int_equal(groups_released(&g, &both, 8, 50), 0);
	assert_int_equal(groups_end(&g), 0);

	assert_int_equal(request(&g, 1)->peak, 150);
	assert_int_equal(request(&g, 1)->peak_ns, 20);
	assert_int_equal(request(&g, 1)->moment, 50);
	assert_int_equal(request(&g, 1)->total, 150);
	assert_int_equal(request(&g, 1)->count, 3);
	assert_int_equal(g.list[GROUP_THREAD].items[2].peak, 170);
	assert_int_equal(g.list[GROUP_THREAD].items[2].moment, 170);
	/* At the request's peak both stacks held something; at the thread's the first held more. */
	c = cell(&g, GROUP_REQUEST, 1, 7);
	assert_int_equal(c->measures[AT_ITS_PEAK], 100);
	assert_int_equal(c->measures[AT_THE_MOMENT], 0);
	assert_int_equal(c->measures[TEMPORARY], 100);
	c = cell(&g, GROUP_THREAD, 2, 7);
	assert_int_equal(c->measures[AT_ITS_PEAK], 120);
	assert_int_equal(c->measures[IN_ALL], 220);
	assert_int_equal(c->measures[COUNTED], 2);
	assert_int_equal(cell(&g, GROUP_THREAD, 2, 8)->measures[AT_ITS_PEAK], 50);
	groups_fini(&g);
}

static void test_largest_requests_keep_their_stacks(void **state)
{
	struct groups g = {0};
	uint32_t kept = 0;

	for (uint32_t i = 0; i < 1000; i++) {
		struct group_of of = of_request(i);

		assert_int_equal(groups_acquired(&g, &of, 1 + i % 9, 10 + i % 500, 1, i), 0);
		assert_int_equal(groups_released(&g, &of, 1 + i % 9, 10 + i % 500), 0);
	}
	assert_int_equal(groups_end(&g), 0);
	for (uint32_t i = 0; i < 1000; i++) {
		kept += request(&g, i)->cells > 0;
		assert_int_equal(request(&g, i)->cells == 0, request(&g, i)->dropped);
		assert_int_equal(request(&g, i)->peak, 10 + i % 500);
		/* Each size came twice, so the largest 48 are those of 24 sizes. */
		assert_int_equal(request(&g, i)->cells > 0, i % 500 >= 500 - GROUPS_REQUESTS / 2);
	}
	assert_int_equal(kept, GROUPS_REQUESTS);
	groups_fini(&g);
}

/* However many requests and stacks there are, memory is bounded, and sums stay whole. */
static void test_bounded(void **state)
{
	const uint32_t requests = 3000, stacks = 500;
	struct groups g = {0};
	uint64_t total = 0;

	for (uint32_t i = 0; i < requests; i++)
		for (uint32_t s = 1; s <= stacks; s++) {
			struct group_of of = {{1, GROUP_NONE, i}, 1};

			assert_int_equal(
			    groups_acquired(&g, &of, s + i % 2 * 1000, 1 + i, 1, i), 0);
			total += 1 + i;
		}
	assert_true(g.cells.count <= GROUPS_CELLS);
	assert_int_equal(groups_end(&g), 0);
	assert_int_equal(g.list[GROUP_THREAD].items[1].total, total);
	for (uint32_t i = 0; i < requests; i++)
		assert_int_equal(request(&g, i)->total, (uint64_t)stacks * (1 + i));
	/* The last ones are the largest. */
	assert_non_null(cell(&g, GROUP_REQUEST, requests - 1, 1000 + stacks));
	assert_int_equal(
	    cell(&g, GROUP_REQUEST, requests - 1, 1000 + stacks)->measures[IN_ALL], requests);
	groups_fini(&g);
}

/* Of more stacks than there is room for, another one has the bytes. */
static void test_full(void **state)
{
	struct group_of of = {{1, GROUP_NONE, GROUP_NONE}, 5};
	struct groups g = {0};

	for (uint32_t s = 1; s <= GROUPS_CELLS + 1000; s++)
		assert_int_equal(groups_acquired(&g, &of, s, 10, 1, s), 0);
	assert_true(groups_full(&g));
	assert_null(cell(&g, GROUP_THREAD, 1, GROUPS_CELLS + 1));
	assert_int_equal(cell(&g, GROUP_THREAD, 1, 5)->live, 10 + 10 * 1000);
	assert_int_equal(groups_released(&g, &of, GROUPS_CELLS + 1, 10), 0);
	assert_int_equal(cell(&g, GROUP_THREAD, 1, 5)->live, 10 * 1000);
	assert_int_equal(groups_end(&g), 0);
	groups_fini(&g);
}

/* More is released than there was, and by whom nothing was acquired. */
static void test_damage(void **state)
{
	struct groups g = {0};
	struct group_of of = of_request(3), other = of_request(9);

	assert_int_equal(groups_released(&g, &other, 1, 5), 0);
	assert_int_equal(groups_acquired(&g, &of, 1, 5, 1, 1), 0);
	assert_int_equal(groups_released(&g, &of, 1, 50), 0);
	assert_int_equal(groups_released(&g, &of, 2, 50), 0);
	assert_int_equal(groups_end(&g), 0);
	assert_int_equal(request(&g, 3)->live, 0);
	assert_int_equal(request(&g, 3)->peak, 5);
	groups_fini(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_sums_and_peaks),
	    cmocka_unit_test(test_largest_requests_keep_their_stacks),
	    cmocka_unit_test(test_bounded),
	    cmocka_unit_test(test_full),
	    cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
