/*
 * backlog.h - blocks that wait for their turn: given back one by one in the order in which they
 * were made, each after a longer wait than those before it, by a consumer slower than the producer.
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
	uint64_t count, bytes; /* that wait at the moment */
	uint64_t served; /* given back before */
	uint64_t wait_ns; /* how long the latest of them waited */
};

/* Of a call site that has steps, from its stacks; *out is all zero before. */
void backlog_read(const struct callsite *c, const struct callsite_member *members, size_t count,
    struct backlog *out);

#endif
