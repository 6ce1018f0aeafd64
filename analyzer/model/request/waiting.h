/*
 * waiting.h - whose call waited while a library's own threads worked? Their stacks begin in the
 * library (a thread pool's, the autograd engine's, that of a pool of processes which takes its
 * results), and nothing on them says who asked for the work: that thread is blocked in the call,
 * and the last that it acquired was on its way there.
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

/* Is what lies on the call site's stack only a library's and the runtime's, standard library and
 * packages of Python included? */
bool waiting_possible(const struct feed *feed, const struct callsites *p, uint32_t callsite);

/* Of what the call site made until the moment, and of `refused` where that is the call site's;
 * NULL: nothing was. Reads the feed again from its start. 0 or negative, err filled. */
int waiting_read(struct feed feed, const struct callsites *p, uint32_t callsite,
    const struct failure *refused, struct waiting *out, struct err *err);

#endif
