/*
 * recoveries.h - the refused requests that the process recovered from, of the host's memory and of
 * devices.
 */
#ifndef ANALYZER_VERDICT_RECOVERIES_H
#define ANALYZER_VERDICT_RECOVERIES_H

#include "model/space/space.h"
#include "verdict/result.h"

/* Fill *out, by time. `judged`: the device's refusal that the report is about, or NULL; the host's
 * is model_failure(). The list is the caller's. 0 or -ENOMEM. */
int recoveries_read(
    const struct model *m, const struct device_failure *judged, struct recoveries *out);

#endif
