/*
 * malloc_held.h - what the host's malloc holds beside live blocks at one moment, by its statistics.
 */
#ifndef ANALYZER_VERDICT_MALLOC_HELD_H
#define ANALYZER_VERDICT_MALLOC_HELD_H

#include "model/callsite/callsite.h"
#include "util/tuned.h"

TUNED(uint64_t, MALLOC_SAME_FAILURE_NS, 200000000,
    "the levels of one failure are written within milliseconds, the allocators' last");

struct malloc_held {
	bool known, split; /* split: both parts are known */
	uint64_t before; /* in use since before an attach */
	uint64_t overhead, free; /* without split: the sum is in `overhead` */
	/* Bytes that the process acquired since the statistics: of memory without any other
	 * explanation, up to this much may lie in free lists. */
	uint64_t since;
};

/* Fill *out for `callsites`' moment. Memory was measured then, or at a later `measured_ns`. */
void malloc_held(const struct model *m, const struct callsites *callsites, uint64_t measured_ns,
    struct malloc_held *out);

#endif
