/*
 * join_arena.h - a limit of ONNX Runtime's own arena, which refuses without asking malloc: no call
 * fails that was recorded. The log's message says how much was left of it, the recording what the
 * arena had taken.
 */
#ifndef ANALYZER_EXPLAIN_JOIN_ARENA_H
#define ANALYZER_EXPLAIN_JOIN_ARENA_H

#include "explain/explain.h"
#include "verdict/result.h"

/* Where the log has such a message, nothing was recorded that ran out, and the arena is told from
 * other memory: makes it the report's failure, and its limit the ledger's. Reads the recording once
 * more. `e` must outlive the result. 0; negative errno, err filled. */
int join_arena(const struct explanation *e, struct verdict_result *r, struct err *err);

#endif
