/*
 * device_cause.h - inside verdict/: why a device's refusal came, by the detectors that the host's
 * are judged with, on the blocks of the space that refused.
 */
#ifndef ANALYZER_VERDICT_DEVICE_CAUSE_H
#define ANALYZER_VERDICT_DEVICE_CAUSE_H

#include "verdict/device/device.h"

/* `then`: the process as it was when `f` was refused. Fills r->candidates and r->verdict, but for
 * the words; r->places become those of that space. r->failure is that of the device already. 0;
 * negative errno. */
int device_cause(struct verdict_result *r, struct feed feed, const struct model *then,
    const struct device_failure *f, struct err *err);

#endif
