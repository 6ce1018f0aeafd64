/*
 * check.h - between check.c, which reads a trace and tells a person what it found, and
 * check_json.c, which tells programs.
 */
#ifndef ANALYZER_CMD_CHECK_H
#define ANALYZER_CMD_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/trace.h"
#include "util/text/err.h"
#include "util/text/json.h"

/* Counts from reading one image's events. */
struct tally {
	uint64_t allocs, frees, live_blocks, live_bytes;
	uint64_t most_live; /* blocks at once */
	uint64_t maps, unmaps, failed;
	uint64_t marks, requests, open_requests;
	bool cut; /* reading stopped before the end, because of `why` */
	struct err why;
};

/* Is all there that was written; and was everything written? */
bool check_is_whole(const struct trace_facts *f, const struct tally *tally);
bool check_is_complete(const struct trace_facts *f, const struct tally *tally);
const char *check_end_word(const struct trace_facts *f);
/* Why something was dropped (enum trace_drop), as a key; NULL: a reason that is newer. */
const char *check_drop_key(size_t reason);

/* One process; and what is told of a directory besides its traces. */
void check_json(struct json *j, struct trace *t, const struct tally *tally);
void check_set_json(struct json *j, const struct trace_set *set);

#endif
