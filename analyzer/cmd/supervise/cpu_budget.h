/*
 * cpu_budget.h - limits the supervisor's CPU time: it earns time at a fixed rate and spends it on
 * samples, however many processes there are. The budget has shares, so that an expensive reading
 * does not delay the cheap ones. Times are in ns. One thread.
 */
#ifndef ANALYZER_CMD_RUN_BUDGET_H
#define ANALYZER_CMD_RUN_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

enum run_budget_share {
	RUN_BUDGET_LOOKS, /* cheap samples, and everything without a share of its own */
	RUN_BUDGET_FINDING, /* looking for new processes */
	RUN_BUDGET_READINGS, /* slow readings: page tables and mappings */
	RUN_BUDGET_DEVICES, /* the helper that samples GPUs */
	RUN_BUDGET_SHARES
};

struct run_budget {
	int64_t left[RUN_BUDGET_SHARES]; /* below 0: spent in advance */
	uint64_t rate[RUN_BUDGET_SHARES]; /* of CPU time in a second */
	uint64_t clock_ns, cpu_ns; /* at the last run_budget_settle() */
	uint64_t apart_ns; /* charged to a share since then, of the CPU time of this process */
};

/* Begin a budget. `sparing`: a twelfth of the usual rate. `clock_ns` is CLOCK_MONOTONIC, `cpu_ns`
 * the CPU time that this process has used so far. */
void run_budget_init(struct run_budget *b, bool sparing, uint64_t clock_ns, uint64_t cpu_ns);

/* Add the income since the last call and subtract the CPU time spent since. CPU time that was not
 * charged to a share is charged to LOOKS. */
void run_budget_settle(struct run_budget *b, uint64_t clock_ns, uint64_t cpu_ns);

void run_budget_charge(struct run_budget *b, enum run_budget_share share, uint64_t cost_ns);
/* Charge the CPU time of another process that worked for us. */
void run_budget_charge_other(struct run_budget *b, enum run_budget_share share, uint64_t cost_ns);

/* Does the share afford that cost? A cost above the largest balance is afforded at the largest
 * balance, and the rest is paid off afterwards. */
bool run_budget_affords(const struct run_budget *b, enum run_budget_share share, uint64_t cost_ns);

/* Returns the time until the share affords the cost; 0: it does now. */
uint64_t run_budget_wait(const struct run_budget *b, enum run_budget_share share, uint64_t cost_ns);

#endif
