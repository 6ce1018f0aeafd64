/*
 * explain.h - finds the out-of-memory messages of a log, explains each and reaches one verdict,
 * with or without a trace.
 *
 * A log may have any bytes, and lines of any length. It is read once, in bounded memory.
 */
#ifndef ANALYZER_EXPLAIN_EXPLAIN_H
#define ANALYZER_EXPLAIN_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "explain/claim/activity.h"
#include "explain/fields.h"
#include "explain/join/when.h"
#include "explain/traceback.h"
#include "knowledge/knowledge.h"
#include "util/arena.h"
#include "util/text/err.h"

struct explain_message {
	const struct knowledge_message *known;
	enum message_kind kind;
	enum cause cause; /* CAUSE_UNKNOWN: the text alone does not decide */
	double confidence;
	bool voted; /* it supports some cause, however weakly */
	const char *meaning; /* a sentence or two with the message's numbers */
	const char *advice; /* by its numbers, in place of the framework's fixes; NULL: none */
	struct fields fields;
	const char *text; /* as in the log, but limited in length */
	uint64_t line, last_line; /* from 1; of the first and last of `count` */
	uint64_t count; /* of messages with this text, or similar ones beyond the limit */
	struct when when;
	const char *time; /* as in the log; NULL: no line near it has one */
	struct traceback traceback;
	enum activity activity; /* what the program did then, by the lines near it */
	unsigned event; /* messages with the same number are about one event */
};

struct explain_fix {
	const char *for_; /* a framework's name, "any" */
	const char *setting, *text; /* setting "" without one */
};
#define EXPLAIN_FIXES_MAX 6u

/* Where a device's memory was, from one message: rows that add up to `total`. */
#define EXPLAIN_ROWS_MAX 12u
struct explain_ledger {
	const char *device; /* "GPU 0" */
	uint64_t total, requested;
	struct explain_row {
		const char *name;
		uint64_t bytes;
	} rows[EXPLAIN_ROWS_MAX];
	size_t row_count;
	int64_t unaccounted;
};

struct explanation {
	struct explain_message *messages; /* in the order of time, or of the log */
	size_t count;
	bool by_time; /* the order is that of the times */
	struct {
		enum cause cause;
		double confidence;
		const char *summary;
		struct explain_fix fixes[EXPLAIN_FIXES_MAX];
		size_t fix_count;
		enum cause runner_up; /* CAUSE_UNKNOWN: none */
		double runner_up_confidence;
		const char *next; /* for an unknown cause: what would decide it, or NULL */
		size_t message; /* index of the message that decides; SIZE_MAX: none */
	} verdict;
	struct explain_ledger ledger; /* row_count 0: no message has it */
	uint64_t bytes, lines;
	const char *notes[4]; /* parts of the log that were skipped, and why */
	size_t note_count;
	struct arena arena; /* owns the words */
};

/* Explain a stream up to its end, or a text. 0; negative errno with err. The strings of `knowledge`
 * must outlive the result. */
int explain_stream(
    FILE *in, const struct knowledge *knowledge, struct explanation *out, struct err *err);
int explain_buffer(const char *text, size_t bytes, const struct knowledge *knowledge,
    struct explanation *out, struct err *err);
void explain_fini(struct explanation *explanation);

#endif
