/*
 * cpu_budget.h - what the supervisor may cost: CPU time that comes in at a fixed rate and is spent
 * by all that it does, however many processes it looks at. It has shares, so that a reading that
 * turns out to be dear does not keep the cheap looks from being in time. Times are ns. One thread.
 */
#ifndef ANALYZER_CMD_RUN_BUDGET_H
#define ANALYZER_CMD_RUN_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

enum run_budget_share {
	RUN_BUDGET_LOOKS, /* whether anything has moved; and all that is charged to nobody else */
	RUN_BUDGET_FINDING, /* which processes there are */
	RUN_BUDGET_READINGS, /* what is slow to read: page tables and mappings */
	RUN_BUDGET_DEVICES, /* what the helper that asks for them takes */
	RUN_BUDGET_SHARES
};

struct run_budget {
	int64_t left[RUN_BUDGET_SHARES]; /* below 0: spent in advance */
	uint64_t rate[RUN_BUDGET_SHARES]; /* of CPU time in a second */
	uint64_t clock_ns, cpu_ns; /* when it was settled last */
	uint64_t apart_ns; /* charged to a share since then, of the CPU time of this process */
};

/* `sparing`: a twelfth of what else is allowed. `clock_ns` is CLOCK_MONOTONIC's, `cpu_ns` the CPU
 * time that this process has taken so far. */
void run_budget_init(struct run_budget *b, bool sparing, uint64_t clock_ns, uint64_t cpu_ns);

/* Adds the income since the last call and subtracts the CPU time spent since; the share LOOKS pays
 * for CPU time that nobody charged. */
void run_budget_settle(struct run_budget *b, uint64_t clock_ns, uint64_t cpu_ns);

void run_budget_charge(struct run_budget *b, enum run_budget_share share, uint64_t cost_ns);
/* What another process spent for us. */
void run_budget_charge_other(struct run_budget *b, enum run_budget_share share, uint64_t cost_ns);

/* Is there enough for something of about that cost? What costs more than can ever be saved up may
 * be done when all is there, and is paid for afterwards. */
bool run_budget_affords(const struct run_budget *b, enum run_budget_share share, uint64_t cost_ns);

/* How long until it is afforded; 0: now. */
uint64_t run_budget_wait(const struct run_budget *b, enum run_budget_share share, uint64_t cost_ns);

#endif
