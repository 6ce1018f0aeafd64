/*
 * what_if.h - the result of `whyoom what-if`: for each change, whether the run would have fitted.
 */
#ifndef ANALYZER_REPORT_WHAT_IF_H
#define ANALYZER_REPORT_WHAT_IF_H

#include "model/torch/torch_replay.h"
#include "report/text/style.h"
#include "trace/trace.h"

struct what_if_row {
	const char *change; /* in words; NULL in the first row, which is the record's own */
	const char *why_not; /* why it does not apply, and the rest is 0; NULL: it applies */
	const char *note; /* how far to trust this row; NULL: as far as the others */
	bool fits;
	int64_t headroom; /* bytes */
	bool refused; /* `refusal` says which request */
	struct torch_refusal refusal;
};
#define WHAT_IF_ROWS 17u

/* The source of the inputs' lengths. */
enum what_if_source {
	WHAT_IF_BY_MARKS, /* in tokens, from the program's marks */
	WHAT_IF_BY_LONGEST, /* from sizes, in tokens because the user gave the longest */
	WHAT_IF_BY_SIZES, /* from the sizes of `reference`'s blocks alone, without tokens */
};

struct what_if_inputs {
	bool asked; /* a change is about lengths; else the rest is 0 */
	enum what_if_source source;
	const char *reference; /* the call site whose sizes stand for lengths; empty: none */
	double fits; /* the largest share of the longest input that fits; 0: none does */
	uint64_t longest_tokens, fits_tokens; /* 0 by sizes */
	uint64_t linear_bytes, square_bytes; /* bytes that grow with the length, its square */
};

struct what_if_view {
	char space[32];
	uint32_t pid;
	struct trace_set_damage damage;
	uint64_t requested, limit; /* bytes, of the failure; 0: unknown */
	struct torch_match match; /* of PyTorch's allocator with its model; no requests: unused */
	struct what_if_inputs inputs;
	struct what_if_row rows[WHAT_IF_ROWS];
	size_t count;
};

#endif
