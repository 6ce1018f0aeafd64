/*
 * device_ledger.h - every byte of a device in exactly one row; or of what PyTorch may take of it,
 * where a limit of its own refused.
 */
#ifndef ANALYZER_VERDICT_DEVICE_LEDGER_H
#define ANALYZER_VERDICT_DEVICE_LEDGER_H

#include "model/callsite/callsite.h"
#include "model/space/space_map.h"
#include "verdict/device/device.h"

struct device_ledger_input {
	const struct model *model; /* as it stood at the moment */
	uint32_t device;
	/* Of PyTorch's blocks there, else of what the driver gave; map and places may be NULL. */
	const struct space_map *map;
	const struct callsites *callsites;
	const enum role *roles; /* by place; NULL: nothing is known */
	const struct candidate *candidates; /* of these places, best first */
	size_t candidate_count;
	uint64_t request; /* what PyTorch refused, 0: nothing */
};

/* Fills d->ledger, but for the pid, from the input and from what d knows. 0 or -ENOMEM. */
int device_ledger_make(struct device_report *d, const struct device_ledger_input *in);

#endif
