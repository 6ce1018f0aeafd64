/*
 * open_call.h - was everything that a call site keeps acquired during one open call? Then it
 * belongs to one request, whatever its number of blocks. The small remains of many calls do not.
 */
#ifndef ANALYZER_MODEL_OPEN_CALL_H
#define ANALYZER_MODEL_OPEN_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "model/feed.h"

struct callsites;

enum open_call {
	/* it returned while the call site grew, or is the program's outermost function */
	OPEN_CALL_NO,
	OPEN_CALL_MAYBE, /* no return was seen, but a loop around it would be invisible */
	OPEN_CALL_YES,
};

/* Filled by open_call.c, const for all others. */
struct call_state {
	enum open_call open; /* did one call acquire everything that the call site keeps? */
	const struct symbol *function; /* its function, if known: the feed's */
	/* Calls of that kind had returned before, and left nothing: it works at a request, and puts
	 * nothing in place for good. */
	bool repeats;
	uint64_t ended_before; /* earlier calls by the same way that returned */
};

/* Fill .call of the call site that keeps most and of those that grew in the same call. Reads the
 * feed again from its start, as far as needed. 0 or negative with err. */
int open_call_read(struct feed feed, struct callsites *p, struct err *err);

#endif
