/*
 * words.h - the verdict in a sentence.
 */
#ifndef ANALYZER_VERDICT_WORDS_H
#define ANALYZER_VERDICT_WORDS_H

#include "verdict/result.h"

/* From everything else in the result; owned by its arena. NULL: no memory. */
const char *words_summary(struct verdict_result *r);

#endif
