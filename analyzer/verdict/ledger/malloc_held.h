/*
 * malloc_held.h - what the host's malloc holds beside live blocks at one moment, by its own
 * account.
 */
#ifndef ANALYZER_VERDICT_MALLOC_HELD_H
#define ANALYZER_VERDICT_MALLOC_HELD_H

#include "model/callsite/callsite.h"

struct malloc_held {
	bool known, split; /* split: the two parts are known apart */
	uint64_t overhead, free; /* without split: the sum is in `overhead` */
	/* Acquired by the process since it was asked: so much more may lie in its free lists, where
	 * memory appeared since that nothing else explains. */
	uint64_t since;
};

/* The moment is that of `places`; memory was measured then, or at `measured_ns`, if that is later.
 */
void malloc_held(const struct model *m, const struct callsites *callsites, uint64_t measured_ns,
    struct malloc_held *out);

#endif
