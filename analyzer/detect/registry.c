/* registry.c - the detectors; one line each. Their order decides nothing. */
#include "detect/registry.h"

const struct detector *const detectors[] = {
    &detect_prompt_growth,
    &detect_leak,
    &detect_state_retention,
    &detect_oversized_intermediate,
    &detect_oversized_model,
    &detect_batch_prealloc,
    &detect_concurrency,
    &detect_fragmentation,
    &detect_external,
    &detect_healthy,
    NULL,
};
