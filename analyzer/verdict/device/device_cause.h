/*
 * device_cause.h - inside verdict/: why a device refused, by the same detectors as the host's, on
 * the blocks of the space that refused.
 */
#ifndef ANALYZER_VERDICT_DEVICE_CAUSE_H
#define ANALYZER_VERDICT_DEVICE_CAUSE_H

#include "verdict/device/device.h"

/* Judge the refusal. Replaces the host's answer: failure, call sites, flow, ranking, coverage's
 * gap, verdict, ledger and what-ifs; r->devices is filled already. 0; negative errno, with err
 * unless -ENOMEM. */
int device_cause(struct verdict_result *r, struct feed feed, const struct device_refusal *refusal,
    struct err *err);

#endif
