/* registry.h - one line for each detector. */
#ifndef ANALYZER_DETECT_REGISTRY_H
#define ANALYZER_DETECT_REGISTRY_H

#include "detect/detect.h"

extern const struct detector detect_prompt_growth;
extern const struct detector detect_leak;
extern const struct detector detect_state_retention;
extern const struct detector detect_oversized_intermediate;
extern const struct detector detect_oversized_model;
extern const struct detector detect_batch_prealloc;
extern const struct detector detect_concurrency;
extern const struct detector detect_fragmentation;
extern const struct detector detect_external;
extern const struct detector detect_healthy;

#endif
