/*
 * nvml_client.h - samples how full each GPU is and which processes use it, by NVIDIA's management
 * library, into run.whyoom. A helper process calls the library (nvml.h), and nothing here ever
 * waits for it. One thread.
 */
#ifndef ANALYZER_CMD_RUN_NVML_H
#define ANALYZER_CMD_RUN_NVML_H

#include <sys/types.h>

#include "cmd/supervise/cpu_budget.h"
#include "cmd/supervise/supervisor_trace.h"

struct run_nvml;

/* Is there a driver of NVIDIA's on this machine? */
bool run_nvml_present(void);

/* Start the helper on that library. NULL: it did not start, and there are no such samples. */
struct run_nvml *run_nvml_start(const char *helper, const char *library);
/* Returns the helper's pid; 0: it has ended, or n is NULL. */
pid_t run_nvml_pid(const struct run_nvml *n);
/* Tells that the caller has reaped the helper. */
void run_nvml_gone(struct run_nvml *n);

/* Record the changes in the helper's last answer, if it has come, and ask again if the budget
 * allows. The helper's CPU time is charged to the budget. Accepts NULL for n. */
void run_nvml_tick(
    struct run_nvml *n, struct run_trace *t, struct run_budget *budget, uint64_t now_ns);

/* Give the helper a moment to end, then kill it. Accepts NULL. */
void run_nvml_stop(struct run_nvml *n);

#endif
