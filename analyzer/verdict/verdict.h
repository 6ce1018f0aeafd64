/* verdict.h - judges a set of traces. Nothing here prints. */
#ifndef ANALYZER_VERDICT_VERDICT_H
#define ANALYZER_VERDICT_VERDICT_H

#include "verdict/result.h"

/* A process that the kernel's OOM killer took, from the kernel's log. */
struct log_victim {
	uint32_t pid; /* the kernel's number, outside containers */
	const char *comm; /* at most 15 bytes of the program's name */
};
/* Facts that are not in the traces. */
struct verdict_hints {
	const struct log_victim *victims;
	size_t victim_count;
	const uint64_t *warm_up_ns; /* as prospect_of(); NULL: PROSPECT_WARM_UP_NS */
};

/* Judge a set of traces. `hints` may be NULL. The set must outlive the result; the caller calls
 * verdict_fini(). 0; negative errno with err, and *out unchanged. */
int verdict_of_set(const struct trace_set *set, const struct verdict_hints *hints,
    struct verdict_result *out, struct err *err);
/* Judge a process from a feed, for tests. `supervised` may be NULL. 0; negative errno with err. */
struct supervised;
int verdict_of_feed(struct feed feed, const struct supervised *supervised,
    struct verdict_result *out, struct err *err);
/* The same with what is known of frameworks, for a process that still runs. */
int verdict_of_running(struct feed feed, struct verdict_result *out, struct err *err);
/* Judge of's process again, from another feed of the same stacks, with the same facts about other
 * processes. The result borrows of's knowledge, so `of` must outlive it. 0; negative errno with
 * err. */
int verdict_again(const struct verdict_result *of, struct feed feed,
    const struct supervised *supervised, struct verdict_result *out, struct err *err);
void verdict_fini(struct verdict_result *result);

#endif
