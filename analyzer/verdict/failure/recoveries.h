/*
 * recoveries.h - the refused requests, of the host and of devices, that the process recovered from.
 */
#ifndef ANALYZER_VERDICT_RECOVERIES_H
#define ANALYZER_VERDICT_RECOVERIES_H

#include "model/space/space.h"
#include "verdict/result.h"

/* Fill *out, by time. `judged`: the device's refusal of the report, or NULL; the host's is
 * model_failure(). The caller frees the list. 0 or -ENOMEM. */
int recoveries_read(
    const struct model *m, const struct device_failure *judged, struct recoveries *out);

#endif
