/*
 * advice.h - what to change, for a verdict: the fixes of its messages, of their frameworks and of
 * their callers.
 */
#ifndef ANALYZER_EXPLAIN_ADVICE_H
#define ANALYZER_EXPLAIN_ADVICE_H

#include "explain/explain.h"
#include "explain/vote.h"
#include "util/text/str.h"

/* Fill the verdict's fixes; `votes` are those of all messages. 0 or -ENOMEM. */
int advice_collect(
    struct explanation *e, const struct knowledge *knowledge, const struct votes *votes);
/* Return a copy that lives as long as the explanation; NULL: no memory. */
const char *advice_keep(struct explanation *e, const struct str *s);

#endif
