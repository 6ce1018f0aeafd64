/* One account for all work: its income bounds its expenses. */
#include "../../util/unit.h"
#include "cmd/supervise/cpu_budget.h"

#define SECOND 1000000000ull
#define MS 1000000ull

/* Spends the whole budget for ten seconds, in readings of that cost. */
static uint64_t greedy(bool sparing, uint64_t cost_ns)
{
	struct run_budget b;
	uint64_t cpu = 0;

	run_budget_init(&b, sparing, SECOND, 0);
	for (uint64_t t = SECOND; t < 11 * SECOND; t += MS) {
		run_budget_settle(&b, t, cpu);
		for (int i = 0; i < RUN_BUDGET_SHARES; i++)
			while (run_budget_affords(&b, (enum run_budget_share)i, cost_ns)) {
				run_budget_charge(&b, (enum run_budget_share)i, cost_ns);
				cpu += cost_ns;
			}
	}
	return cpu;
}

static void bounded(void **state)
{
	for (uint64_t cost = 10000; cost <= MS; cost *= 10) {
		uint64_t spent = greedy(false, cost);

		assert_in_range(
		    spent, 8 * 10 * MS, 10 * 10 * MS + 3 * MS); /* ten seconds: about 1 % */
	}
	assert_true(greedy(true, 10000) <= 10 * MS); /* 0.1 % */
}

/* Work that costs more than the maximum savings is done anyway, rarely, and delays no sample. */
static void dear_reading(void **state)
{
	struct run_budget b;
	uint64_t wait;

	run_budget_init(&b, false, 0, 0);
	assert_true(run_budget_affords(&b, RUN_BUDGET_READINGS, 300 * MS));
	assert_int_equal(run_budget_wait(&b, RUN_BUDGET_READINGS, 300 * MS), 0);
	run_budget_charge(&b, RUN_BUDGET_READINGS, 300 * MS);
	run_budget_settle(&b, SECOND, 300 * MS);
	assert_false(run_budget_affords(&b, RUN_BUDGET_READINGS, 1));
	assert_true(run_budget_affords(&b, RUN_BUDGET_LOOKS, MS));
	wait = run_budget_wait(&b, RUN_BUDGET_READINGS, MS);
	assert_in_range(wait, 90 * SECOND, 200 * SECOND);
	run_budget_settle(&b, SECOND + wait, 300 * MS);
	assert_true(run_budget_affords(&b, RUN_BUDGET_READINGS, MS));
}

/* CPU time without an owner is charged to samples; other processes' CPU time is not. */
static void what_is_charged_to_nobody(void **state)
{
	struct run_budget b;
	int64_t before;

	run_budget_init(&b, false, 0, 5 * MS);
	before = b.left[RUN_BUDGET_LOOKS];
	run_budget_charge(&b, RUN_BUDGET_FINDING, MS);
	run_budget_charge_other(&b, RUN_BUDGET_DEVICES, 100 * MS);
	run_budget_settle(&b, 0, 8 * MS);
	assert_int_equal(before - b.left[RUN_BUDGET_LOOKS], 2 * MS);
	assert_false(run_budget_affords(&b, RUN_BUDGET_DEVICES, 1));
	/* A clock that goes back adds nothing. */
	before = b.left[RUN_BUDGET_LOOKS];
	run_budget_settle(&b, 10 * SECOND, 8 * MS);
	assert_true(b.left[RUN_BUDGET_LOOKS] >= before);
	before = b.left[RUN_BUDGET_LOOKS];
	run_budget_settle(&b, SECOND, 8 * MS);
	assert_int_equal(b.left[RUN_BUDGET_LOOKS], before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(bounded),
	    cmocka_unit_test(dear_reading), cmocka_unit_test(what_is_charged_to_nobody)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
