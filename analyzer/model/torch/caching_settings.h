/*
 * caching_settings.h - the settings of PyTorch's caching allocator that decide where blocks go,
 * from PYTORCH_CUDA_ALLOC_CONF (PYTORCH_ALLOC_CONF since 2.9). Sizes are in bytes.
 */
#ifndef ANALYZER_MODEL_CACHING_SETTINGS_H
#define ANALYZER_MODEL_CACHING_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "util/text/err.h"

#define CACHING_MIB (1ull << 20)
#define CACHING_MIN_BLOCK 512u
#define CACHING_SMALL CACHING_MIB /* the largest request of the small pools */
#define CACHING_ROUNDUPS 16u /* 1 MiB, 2 MiB, 4 MiB to 32 GiB and more */

struct caching_settings {
	uint64_t large_segment; /* for requests over 1 MiB and below 10 MiB */
	/* larger blocks, and of this size, are not split; UINT64_MAX: all are */
	uint64_t max_split;
	uint64_t max_rounding; /* the most by which such a block may exceed the request */
	uint32_t roundup[CACHING_ROUNDUPS]; /* divisions of a power of two; 0, 1: none */
	double gc_threshold; /* share of the allowed bytes; 0: no collection */
	double memory_fraction; /* share of the device; 0: no limit */
	bool expandable;
	bool foreign_backend; /* backend:cudaMallocAsync: it has no blocks */
};

void caching_settings_init(struct caching_settings *s); /* sets PyTorch's defaults */
/* Parse the text into *s; NULL sets nothing. False: a setting is unknown to this model, or PyTorch
 * would refuse its value; the settings that were understood are set. `err`, which may be NULL, then
 * says which setting, where, and what is allowed. */
bool caching_settings_parse(struct caching_settings *s, const char *text, struct err *err);

/* Return the size of the block for a request of that many bytes. */
uint64_t caching_round(const struct caching_settings *s, uint64_t bytes);

#endif
