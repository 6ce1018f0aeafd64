/*
 * open_call.h - did all that a place keeps come to be while one call stayed open? Then it is one
 * request's, however many blocks it is made of; what many calls left behind, each a little, is not.
 */
#ifndef ANALYZER_MODEL_OPEN_CALL_H
#define ANALYZER_MODEL_OPEN_CALL_H

#include "model/callsite/callsite.h"

/* Sets .open_call of the place that keeps most, and of those that grew in the same call; counts in
 * .calls_before. Reads the feed again from its start, as far as needed. 0 or negative, err filled.
 */
int open_call_read(struct feed feed, struct callsites *p, struct err *err);

#endif
