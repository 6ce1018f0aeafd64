#include "detect/registry.h"

detector *const detectors[CAUSE_COUNT] = {
#define CAUSE(id, name, detect, class, wording, fixes, what_if, claim) [CAUSE_##id] = detect,
#include "knowledge/causes.def"
};
