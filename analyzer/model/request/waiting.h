/*
 * waiting.h - finds the call that waited while a library's own threads worked. Their stacks begin
 * in the library (a thread pool, the autograd engine), so no frame shows the caller. The caller is
 * blocked in the call, and made its last acquisition on the way there.
 */
#ifndef ANALYZER_MODEL_WAITING_H
#define ANALYZER_MODEL_WAITING_H

#include "model/callsite/callsite.h"

struct waiting {
	uint32_t stack; /* it leads to the call; 0: none, or several */
	uint32_t frame; /* the innermost frame of the program's own code */
	double share; /* of the call site's bytes, made after that line's acquisition */
};

/* True when the call site's stack has only frames of a library, the runtime, Python's standard
 * library and packages. */
bool waiting_possible(const struct feed *feed, const struct callsites *p, uint32_t callsite);

/* Find the waiting call for what the call site made until the moment, and for `refused` if it is
 * the call site's; NULL: nothing was refused. Reads the feed again from its start. 0, or negative
 * with err. */
int waiting_read(struct feed feed, const struct callsites *p, uint32_t callsite,
    const struct failure *refused, struct waiting *out, struct err *err);

#endif
