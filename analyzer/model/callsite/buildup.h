/*
 * buildup.h - a call site whose blocks build up and are then all released, again and again, and
 * then a far larger build-up that stays.
 */
#ifndef ANALYZER_MODEL_BUILDUP_H
#define ANALYZER_MODEL_BUILDUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct callsite;
struct callsite_member;

/* Filled by buildup.c, const for all others. */
struct buildup {
	uint64_t bytes; /* of the present one, if it is far larger than those before; else 0 */
	uint64_t since_ns; /* its begin */
	uint64_t times; /* how many there were before */
	uint64_t largest; /* bytes of the largest of those */
	/* They get larger from one to the next, until the moment: bytes of the present one, of the
	 * first one, and how many were larger than all before. */
	bool grows;
	uint64_t now, first, records;
};

/* Of a call site that has steps, from its stacks; *out is all zero before. */
void buildup_read(const struct callsite *c, const struct callsite_member *members, size_t count,
    struct buildup *out);

#endif
