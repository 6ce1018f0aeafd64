/*
 * xxh64.h - the XXH64 checksum, whole or computed in pieces.
 */
#ifndef ANALYZER_TRACE_XXH64_H
#define ANALYZER_TRACE_XXH64_H

#include <stddef.h>
#include <stdint.h>

struct xxh64 {
	uint64_t lane[4], total;
	uint8_t rest[32];
};

void xxh64_init(struct xxh64 *x);
void xxh64_add(struct xxh64 *x, const void *data, size_t bytes);
uint64_t xxh64_done(const struct xxh64 *x);
uint64_t xxh64_of(const void *data, size_t bytes); /* of one piece */

#endif
