/*
 * caching_settings.h - the settings of PyTorch's caching allocator that decide where blocks go, as
 * PYTORCH_CUDA_ALLOC_CONF (PYTORCH_ALLOC_CONF since 2.9) gives them. Sizes are bytes.
 */
#ifndef ANALYZER_MODEL_CACHING_SETTINGS_H
#define ANALYZER_MODEL_CACHING_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "util/text/err.h"

#define CACHING_MIB (1ull << 20)
#define CACHING_ROUNDUPS 16u /* 1 MiB, 2 MiB, 4 MiB to 32 GiB and more */

struct caching_settings {
	uint64_t large_segment; /* of requests over 1 MiB and below 10 MiB */
	uint64_t max_split; /* blocks of this size and more are not split; UINT64_MAX: none */
	uint64_t max_rounding; /* by which such a block may be larger than what was asked for */
	uint32_t roundup[CACHING_ROUNDUPS]; /* divisions of a power of two; 0, 1: none */
	double gc_threshold; /* share of what is allowed; 0: no collection */
	double memory_fraction; /* share of the device that is allowed; 0: no limit of its own */
	bool expandable;
	bool foreign_backend; /* backend:cudaMallocAsync: there are no blocks */
};

void caching_settings_init(struct caching_settings *s); /* PyTorch's defaults */
/* Takes over what the text sets; NULL: nothing. False: it has a setting that this model does not
 * know, or a value that PyTorch would refuse; what was understood is taken over all the same. `err`
 * (which may be NULL) then says what, where, and what there is. */
bool caching_settings_parse(struct caching_settings *s, const char *text, struct err *err);

/* The size of the block for a request of so many bytes. */
uint64_t caching_round(const struct caching_settings *s, uint64_t bytes);

#endif
