/*
 * device_ledger.h - puts every byte of a device in exactly one row; if PyTorch's own limit refused,
 * every byte that PyTorch may take of it.
 */
#ifndef ANALYZER_VERDICT_DEVICE_LEDGER_H
#define ANALYZER_VERDICT_DEVICE_LEDGER_H

#include "model/callsite/callsite.h"
#include "model/space/space_map.h"
#include "verdict/device/device.h"

struct device_ledger_input {
	const struct model *model; /* at the moment */
	uint32_t device;
	/* Of PyTorch's blocks there, or else of the driver's. Both may be NULL. */
	const struct space_map *map;
	const struct callsites *callsites;
	const enum role *roles; /* by call site; NULL: unknown */
	const struct candidate *candidates; /* of these call sites, best first */
	size_t candidate_count;
	uint64_t request; /* refused by PyTorch, bytes; 0: none */
};

/* Fill d->ledger, except the pid, from the input and the rest of *d. 0 or -ENOMEM. */
int device_ledger_make(struct device_report *d, const struct device_ledger_input *in);

#endif
