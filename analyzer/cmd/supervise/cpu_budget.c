/*
 * cpu_budget.c - see cpu_budget.h: token buckets. Together they let in less than nine thousandths
 * of a core, and hold at most what comes in within two seconds, so that no ten seconds cost more
 * than about a hundredth.
 */
#include "cmd/supervise/cpu_budget.h"

#define SECOND 1000000000ull
#define SAVED_SECONDS 2u

static const uint64_t rates[RUN_BUDGET_SHARES] = {
    [RUN_BUDGET_LOOKS] = SECOND / 1000 * 3,
    [RUN_BUDGET_FINDING] = SECOND / 1000 * 2,
    [RUN_BUDGET_READINGS] = SECOND / 1000 * 2,
    [RUN_BUDGET_DEVICES] = SECOND / 10000 * 15,
};

static int64_t most(const struct run_budget *b, enum run_budget_share share)
{
	return (int64_t)(b->rate[share] * SAVED_SECONDS);
}

void run_budget_init(struct run_budget *b, bool sparing, uint64_t clock_ns, uint64_t cpu_ns)
{
	*b = (struct run_budget){.clock_ns = clock_ns, .cpu_ns = cpu_ns};
	for (int i = 0; i < RUN_BUDGET_SHARES; i++) {
		b->rate[i] = sparing ? rates[i] / 12 : rates[i];
		b->left[i] = most(b, (enum run_budget_share)i);
	}
}

void run_budget_settle(struct run_budget *b, uint64_t clock_ns, uint64_t cpu_ns)
{
	uint64_t passed = clock_ns > b->clock_ns ? clock_ns - b->clock_ns : 0;
	uint64_t spent = cpu_ns > b->cpu_ns ? cpu_ns - b->cpu_ns : 0;

	for (int i = 0; i < RUN_BUDGET_SHARES; i++) {
		b->left[i] += (int64_t)((double)passed * (double)b->rate[i] / (double)SECOND);
		if (b->left[i] > most(b, (enum run_budget_share)i))
			b->left[i] = most(b, (enum run_budget_share)i);
	}
	if (spent > b->apart_ns)
		b->left[RUN_BUDGET_LOOKS] -= (int64_t)(spent - b->apart_ns);
	b->apart_ns = 0;
	b->clock_ns = clock_ns > b->clock_ns ? clock_ns : b->clock_ns;
	b->cpu_ns = cpu_ns;
}

void run_budget_charge(struct run_budget *b, enum run_budget_share share, uint64_t cost_ns)
{
	b->left[share] -= (int64_t)cost_ns;
	b->apart_ns += cost_ns;
}

void run_budget_charge_other(struct run_budget *b, enum run_budget_share share, uint64_t cost_ns)
{
	b->left[share] -= (int64_t)cost_ns;
}

/* What has to be there. */
static int64_t wanted(const struct run_budget *b, enum run_budget_share share, uint64_t cost_ns)
{
	int64_t all = most(b, share);

	return cost_ns < (uint64_t)all ? (int64_t)cost_ns : all;
}

bool run_budget_affords(const struct run_budget *b, enum run_budget_share share, uint64_t cost_ns)
{
	return b->left[share] >= wanted(b, share, cost_ns);
}

uint64_t run_budget_wait(const struct run_budget *b, enum run_budget_share share, uint64_t cost_ns)
{
	int64_t missing = wanted(b, share, cost_ns) - b->left[share];

	return missing <= 0
		   ? 0
		   : (uint64_t)((double)missing * (double)SECOND / (double)b->rate[share]) + 1;
}
