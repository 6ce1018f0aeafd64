/* words.h - the verdict as a sentence or two. */
#ifndef ANALYZER_VERDICT_WORDS_H
#define ANALYZER_VERDICT_WORDS_H

#include "verdict/result.h"

/* Write the summary from the rest of the result, whose arena owns it; NULL: no memory. */
const char *words_summary(struct verdict_result *r);

#endif
