/*
 * buildup.h - a call site whose blocks build up and are then all released, again and again, before
 * a far larger build-up that stays.
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
	uint64_t bytes; /* of the current one, if it is far larger than all before; else 0 */
	uint64_t since_ns; /* its begin */
	uint64_t times; /* number of build-ups before */
	uint64_t largest; /* bytes of the largest one before */
	/* They grow from one to the next, until the moment: bytes of the current one, of the first
	 * one, and how many were larger than all before. */
	bool grows;
	uint64_t now, first, records;
};

/* Read the build-ups of a call site with steps, from its stacks; *out is zeroed before. */
void buildup_read(const struct callsite *c, const struct callsite_member *members, size_t count,
    struct buildup *out);

#endif
