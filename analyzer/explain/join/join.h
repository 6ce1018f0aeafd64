/*
 * join.h - joins a log with the trace of the same run: which messages are about recorded failures,
 * and one verdict from both. The trace leads; if it shows no failure, or does not decide, the log
 * does.
 */
#ifndef ANALYZER_EXPLAIN_JOIN_H
#define ANALYZER_EXPLAIN_JOIN_H

#include "explain/explain.h"
#include "verdict/verdict.h"

enum join {
	JOIN_NOTHING,
	JOIN_FAILURE, /* about the reported failure */
	JOIN_RECOVERED, /* about a refused request that the program recovered from */
};

/* List the victims that the log names, for verdict_of_set(). The array is in `arena`; the
 * explanation must outlive it. NULL: no memory. */
const struct log_victim *join_victims(
    const struct explanation *e, struct arena *arena, size_t *count);

/* Find what each message is about, by the sizes and pids in it. The array of e->count elements is
 * in `arena`; NULL: no memory. */
const enum join *join_messages(
    const struct explanation *e, const struct verdict_result *r, struct arena *arena);

/* Replace the verdict by the log's if the trace has none and the log does. `e` must outlive the
 * result. True: it was replaced. */
bool join_verdict(const struct explanation *e, const enum join *of, struct verdict_result *r);

/*
 * ONNX Runtime's own arena has a limit, at which it refuses without asking malloc: no call fails
 * that was recorded. The log's message says how much was left of it, the recording what the arena
 * had taken. Where the log has such a message, nothing was recorded that ran out, and the arena is
 * told from other memory: makes it the report's failure, and its limit the ledger's. Reads the
 * recording once more. `e` must outlive the result. 0; negative errno, err filled.
 */
int join_arena(const struct explanation *e, struct verdict_result *r, struct err *err);

#endif
