/*
 * waiting.h - which call waited while a library's own threads worked? Their stacks begin in the
 * library (a thread pool, the autograd engine), and no frame shows the caller. The caller is
 * blocked in the call; its last acquisition was on the way there.
 */
#ifndef ANALYZER_MODEL_WAITING_H
#define ANALYZER_MODEL_WAITING_H

#include "model/callsite/callsite.h"

struct waiting {
	uint32_t stack; /* the one that leads to the call; 0: nobody's, or of several */
	uint32_t frame; /* of one's own code, the innermost */
	double
	    share; /* of the call site's bytes, made while that line was the last one to acquire */
};

/* True when the call site's stack has only frames of a library and the runtime, standard library
 * and packages of Python included. */
bool waiting_possible(const struct feed *feed, const struct callsites *p, uint32_t callsite);

/* Find the waiting call for what the call site made until the moment, and for `refused` where that
 * is the call site's; NULL: nothing was refused. Reads the feed again from its start. 0 or
 * negative, err filled. */
int waiting_read(struct feed feed, const struct callsites *p, uint32_t callsite,
    const struct failure *refused, struct waiting *out, struct err *err);

#endif
