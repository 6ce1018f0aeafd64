/* registry.c - the detectors; one line each. Their order decides nothing. */
#include "detect/registry.h"

const struct detector *const detectors[] = {
    &detect_prompt_growth,
    &detect_leak,
    &detect_oversized_intermediate,
    &detect_healthy,
    NULL,
};
