/*
 * judge.h - one verdict from all messages of a log.
 */
#ifndef ANALYZER_EXPLAIN_JUDGE_H
#define ANALYZER_EXPLAIN_JUDGE_H

#include "explain/explain.h"

/* Judge all messages: fill cause and meaning of each, the ledger and the verdict. 0 or -ENOMEM. */
int judge(struct explanation *explanation, const struct knowledge *knowledge);

#endif
