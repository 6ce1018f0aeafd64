/* registry.h - the detectors of causes.def, one file each. */
#ifndef ANALYZER_DETECT_REGISTRY_H
#define ANALYZER_DETECT_REGISTRY_H

#include "detect/detect.h"

#define CAUSE(id, name, detect, class, wording, fixes, what_if, claim) detector detect;
#include "knowledge/causes.def"

#endif
