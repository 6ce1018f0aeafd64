/*
 * nvml_client.h - how full each device is and who uses it, as NVIDIA's management library says from
 * outside, into run.whyoom. A helper process asks (nvml.h): nothing here waits for it, whatever it
 * does. One thread.
 */
#ifndef ANALYZER_CMD_RUN_NVML_H
#define ANALYZER_CMD_RUN_NVML_H

#include <sys/types.h>

#include "cmd/supervise/cpu_budget.h"
#include "cmd/supervise/supervisor_trace.h"

struct run_nvml;

/* Is there a driver of NVIDIA's on this machine? */
bool run_nvml_present(void);

/* Starts the helper on that library. NULL: it cannot be; then there are no such samples. */
struct run_nvml *run_nvml_start(const char *helper, const char *library);
/* The helper's pid, 0: it has ended, or n is NULL. */
pid_t run_nvml_pid(const struct run_nvml *n);
/* It was waited for by somebody else. */
void run_nvml_gone(struct run_nvml *n);

/* Records what the last question brought, where anything has changed, and asks again, as often as
 * it is called and the budget allows, to which the helper's time is charged. NULL is accepted for
 * n. */
void run_nvml_tick(
    struct run_nvml *n, struct run_trace *t, struct run_budget *budget, uint64_t now_ns);

/* Lets the helper end, for a moment; then ends it. Accepts NULL. */
void run_nvml_stop(struct run_nvml *n);

#endif
