/*
 * join.h - a log beside the recording of the same run: which messages tell of what was recorded,
 * and one verdict of both. The recording leads; where it saw nothing run out, or cannot decide, the
 * log may.
 */
#ifndef ANALYZER_EXPLAIN_JOIN_H
#define ANALYZER_EXPLAIN_JOIN_H

#include "explain/explain.h"
#include "verdict/verdict.h"

enum join {
	JOIN_NOTHING,
	JOIN_FAILURE, /* of the report's */
	JOIN_RECOVERED, /* of a request that was refused, and got over */
};

/* The victims that the log names, for verdict_of_set(). The array and the words are of `arena`; the
 * explanation must outlive them. NULL: no memory. */
const struct log_victim *join_victims(
    const struct explanation *e, struct arena *arena, size_t *count);

/* What each message tells of, by the sizes and pids in it. The array, of e->count, is of `arena`;
 * NULL: no memory. */
const enum join *join_messages(
    const struct explanation *e, const struct verdict_result *r, struct arena *arena);

/* Makes the log's verdict the report's, where the recording has none and the log does. `e` must
 * outlive the result. True: it did. */
bool join_verdict(const struct explanation *e, const enum join *of, struct verdict_result *r);

#endif
