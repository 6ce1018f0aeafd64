/*
 * keep_tidy.h - which of the kept events no longer matter: what was released since, and what is too
 * much. Knows the bodies of events; owns no memory but for the time of the call.
 */
#ifndef SHIM_KEEP_TIDY_H
#define SHIM_KEEP_TIDY_H

#include <stdint.h>

struct keep_tidying {
	uint8_t *records; /* struct keep_record, KEEP_UNIT aligned; in and out */
	uint32_t units; /* in and out */
	uint32_t most; /* units that may be left */
	uint64_t settled; /* ticks: releases after these may still be taken back */
	uint64_t pause; /* ticks between two levels of a kind that are kept; raised as need be */
	uint64_t left_out; /* raised by each that mattered and had no room */
	int releases_lost; /* not all releases are there: then what they release is not to be kept
			    */
};

void keep_tidy(struct keep_tidying *k);

#endif
