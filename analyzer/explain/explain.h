/*
 * explain.h - what a log says about memory: its out-of-memory messages in the order of time, what
 * each means, and one verdict. For when there is no trace, and beside one.
 *
 * A log is data: any bytes, lines of any length. It is read once, in bounded memory.
 */
#ifndef ANALYZER_EXPLAIN_EXPLAIN_H
#define ANALYZER_EXPLAIN_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "explain/fields.h"
#include "explain/join/when.h"
#include "explain/traceback.h"
#include "knowledge/knowledge.h"
#include "util/arena.h"
#include "util/text/err.h"

struct explain_message {
	const struct knowledge_message *known;
	enum message_kind kind;
	enum cause cause; /* CAUSE_UNKNOWN: the text alone cannot decide, or it has none */
	double confidence;
	bool voted; /* it speaks for some cause, however faintly */
	const char *meaning; /* a sentence or two, with the message's own numbers */
	struct fields fields;
	const char *text; /* as in the log, perhaps cut */
	uint64_t line, last_line; /* from 1; of the first and last of `count` */
	uint64_t count; /* how often: the same text, or more like it than are kept apart */
	struct when when;
	const char *time; /* as in the log; NULL: no line near it names one */
	struct traceback traceback;
	unsigned event; /* messages of one number tell of one event */
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
	struct explain_message *messages; /* the story */
	size_t count;
	bool by_time; /* ordered by their times; else as in the log */
	struct {
		enum cause cause;
		double confidence;
		const char *summary;
		struct explain_fix fixes[EXPLAIN_FIXES_MAX];
		size_t fix_count;
		enum cause runner_up; /* CAUSE_UNKNOWN: none */
		double runner_up_confidence;
		const char *next; /* of unknown: what would decide; NULL */
		size_t message; /* index of the one it rests on; SIZE_MAX: none */
	} verdict;
	struct explain_ledger ledger; /* row_count 0: no message has it */
	uint64_t bytes, lines;
	const char *notes[4]; /* what was not looked at, and why */
	size_t note_count;
	struct arena arena; /* owns the words */
};

/* Reads `in` to its end. 0; negative errno with err. Strings of `knowledge` must outlive the
 * result. */
int explain_stream(
    FILE *in, const struct knowledge *knowledge, struct explanation *out, struct err *err);
int explain_text(const char *text, size_t bytes, const struct knowledge *knowledge,
    struct explanation *out, struct err *err);
void explain_fini(struct explanation *explanation);

#endif
