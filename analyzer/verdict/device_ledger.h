/*
 * device_ledger.h - every byte of a device in exactly one row.
 */
#ifndef ANALYZER_VERDICT_DEVICE_LEDGER_H
#define ANALYZER_VERDICT_DEVICE_LEDGER_H

#include "model/place.h"
#include "model/space_map.h"
#include "verdict/device.h"

/* Fills d->ledger, but for the pid, from the model as it stands and from what d knows. `map` and
 * `places` are PyTorch's, or NULL. `request`: what was refused, 0 nothing. */
void device_ledger_make(struct device_report *d, const struct model *m, uint32_t device,
    const struct space_map *map, const struct places *places, uint64_t request);

#endif
