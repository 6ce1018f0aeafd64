/*
 * verdict.h - from a set of traces to the answer. Nothing here prints.
 */
#ifndef ANALYZER_VERDICT_VERDICT_H
#define ANALYZER_VERDICT_VERDICT_H

#include "verdict/result.h"

/* Whom the kernel's OOM killer took, as its log has it: the pid as the kernel counts, and at most
 * 15 bytes of a name. */
struct log_victim {
	uint32_t pid;
	const char *comm;
};
/* What is known besides the traces. */
struct verdict_hints {
	const struct log_victim *victims;
	size_t victim_count;
};

/* 0; negative errno with err filled. `hints` may be NULL. The set must outlive the result. */
int verdict_of_set(const struct trace_set *set, const struct verdict_hints *hints,
    struct verdict_result *out, struct err *err);
/* The same for one process given as a feed; `supervisor` may be NULL. For tests. */
struct supervised;
int verdict_of_feed(struct feed feed, const struct supervised *supervised,
    struct verdict_result *out, struct err *err);
/* `of`'s process once more, as another feed of the same stacks has it, and with what was known of
 * it beside. What was looked up for `of` is looked up no more: it must outlive the result. */
int verdict_again(const struct verdict_result *of, struct feed feed,
    const struct supervised *supervised, struct verdict_result *out, struct err *err);
void verdict_fini(struct verdict_result *result);

#endif
