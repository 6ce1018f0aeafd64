/*
 * judge.h - one verdict from all messages of a log.
 */
#ifndef ANALYZER_EXPLAIN_JUDGE_H
#define ANALYZER_EXPLAIN_JUDGE_H

#include "explain/explain.h"

/* Judges all messages: fills cause and meaning of each, the ledger and the verdict. 0 or -ENOMEM.
 */
int judge_log(struct explanation *e, const struct knowledge *knowledge);

#endif
