/*
 * backlog.h - blocks that wait in a queue: released one by one in the order of their allocation,
 * each after a longer wait than those before it, because the consumer is slower than the producer.
 */
#ifndef ANALYZER_MODEL_BACKLOG_H
#define ANALYZER_MODEL_BACKLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct callsite;
struct callsite_member;

/* Filled by backlog.c, const for all others. */
struct backlog {
	bool grows;
	uint64_t count, bytes; /* waiting at the moment */
	uint64_t served; /* released before */
	uint64_t wait_ns; /* wait of the latest released block */
};

/* Read the backlog of a call site with steps, from its stacks; *out is zeroed before. */
void backlog_read(const struct callsite *c, const struct callsite_member *members, size_t count,
    struct backlog *out);

#endif
