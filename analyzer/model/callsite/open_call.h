/*
 * open_call.h - was all that a call site keeps acquired while one call stayed open? Then it belongs
 * to one request, however many blocks it consists of. What many calls left behind, a little each,
 * does not.
 */
#ifndef ANALYZER_MODEL_OPEN_CALL_H
#define ANALYZER_MODEL_OPEN_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "model/feed.h"

struct callsites;

enum open_call {
	OPEN_CALL_NO, /* it was left while the call site grew, or is the program's outermost
			 function */
	OPEN_CALL_MAYBE, /* it was not seen to be left, but a loop around it would not be seen */
	OPEN_CALL_YES,
};

/* Filled by open_call.c, const for all others. */
struct call_state {
	enum open_call open; /* whether one call acquired all that the call site keeps */
	const struct symbol *function; /* its function, where that is known: the feed's */
	/* Calls of that kind had ended before, and left nothing: it works at a request, and puts
	 * nothing in place for good. */
	bool repeats;
	uint64_t ended_before; /* calls of the same way in */
};

/* Fill .call of the call site that keeps most and of those that grew in the same call. Reads the
 * feed again from its start, as far as needed. 0 or negative, err filled. */
int open_call_read(struct feed feed, struct callsites *p, struct err *err);
/* Set .call.open of that call site to OPEN_CALL_NO: several requests hold it alike. */
void open_call_retract(struct callsites *p, uint32_t callsite);

#endif
