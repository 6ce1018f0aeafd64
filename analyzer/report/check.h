/*
 * check.h - the result of `whyoom check`: are traces whole and complete, and what do they hold?
 */
#ifndef ANALYZER_REPORT_CHECK_H
#define ANALYZER_REPORT_CHECK_H

#include "report/text/style.h"
#include "trace/trace.h"
#include "util/vec.h"

/* The blocks of a space: a handle of virtual memory is one, too. */
struct check_space {
	char name[32];
	uint64_t allocs, frees, live_blocks, live_bytes, most_live, most_bytes;
};

/* Counts from reading all events of one trace. */
struct check_tally {
	uint64_t allocs, frees, live_blocks, live_bytes;
	uint64_t most_live; /* blocks at once */
	uint64_t maps, unmaps, failed;
	VEC(struct check_space) spaces; /* without the host's */
	uint64_t marks, requests, open_requests;
	bool cut; /* reading stopped before the end; `why` says why */
	struct err why;
};

struct check_view {
	const struct trace_set *sets; /* one for each named path; all events were read */
	size_t set_count;
	/* One for each trace, in the order of the sets: a set's images, then its supervisor. */
	const struct check_tally *tallies;
};

/* Return the number of a set's traces, its supervisor's included; and the one at that index. */
size_t check_trace_count(const struct trace_set *set);
struct trace *check_trace(const struct trace_set *set, size_t index);

/* Whole: the file holds what was written. Complete: everything that happened was written. */
bool check_is_whole(const struct trace_facts *f, const struct check_tally *tally);
bool check_is_complete(const struct trace_facts *f, const struct check_tally *tally);

/* Return why events were dropped (enum trace_drop): the key in JSON, the words in text. NULL: this
 * version does not know the reason. */
const char *check_drop_key(size_t reason);
const char *check_drop_words(size_t reason);

#endif
