/*
 * verdict.h - from a set of traces to the answer. Nothing here prints.
 */
#ifndef ANALYZER_VERDICT_VERDICT_H
#define ANALYZER_VERDICT_VERDICT_H

#include "verdict/result.h"

/* A process that the kernel's OOM killer took, as the kernel's log says. */
struct log_victim {
	uint32_t pid; /* as the kernel counts, outside of containers */
	const char *comm; /* at most 15 bytes of the program's name */
};
/* Facts from elsewhere than the traces. */
struct verdict_hints {
	const struct log_victim *victims;
	size_t victim_count;
};

/* Judge a set of traces. `hints` may be NULL. The set must outlive the result, and the caller calls
 * verdict_fini(). 0; negative errno with err, and then *out stays as it was. */
int verdict_of_set(const struct trace_set *set, const struct verdict_hints *hints,
    struct verdict_result *out, struct err *err);
/* Judge one process from a feed. `supervised` may be NULL. For tests. 0; negative errno with err.
 */
struct supervised;
int verdict_of_feed(struct feed feed, const struct supervised *supervised,
    struct verdict_result *out, struct err *err);
/* Judge of's process again from another feed of the same stacks, with the same facts about the
 * other processes. The result borrows of's knowledge, so `of` must outlive it. 0; negative errno
 * with err.
 */
int verdict_again(const struct verdict_result *of, struct feed feed,
    const struct supervised *supervised, struct verdict_result *out, struct err *err);
void verdict_fini(struct verdict_result *result);

#endif
