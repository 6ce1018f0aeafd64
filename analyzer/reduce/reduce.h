/*
 * reduce.h - finds the smallest trace that still fails for the same cause, by delta debugging over
 * the acquisitions of a process, by requests, call sites and time. Limits and measurements are
 * lowered by the memory that is left out.
 *
 * A. Zeller and R. Hildebrandt, Simplifying and Isolating Failure-Inducing Input, IEEE Transactions
 * on Software Engineering 28(2), 2002: https://doi.org/10.1109/32.988498
 */
#ifndef ANALYZER_REDUCE_REDUCE_H
#define ANALYZER_REDUCE_REDUCE_H

#include <signal.h>

#include "reduce/view.h"
#include "verdict/device/device.h"

struct reduce_request {
	double seconds; /* limit of the search */
	/* When it becomes true, the search ends with the result so far. NULL: never. */
	const volatile sig_atomic_t *stop;
	/* Called for each trace that is tried, on the disk: does it fail as the original did? 1, 0
	 * or negative with err. NULL: the verdict alone decides. */
	int (*fails)(void *arg, const char *path, struct err *err);
	void *arg;
};

struct reduce_result {
	uint64_t events, events_left; /* of the process, without its supervisor's */
	uint64_t blocks, blocks_left; /* acquisitions, mappings and blocks on devices */
	uint64_t limit_less; /* bytes by which the limit is lower */
	uint32_t trials;
	bool ended; /* the search ended before the time was up */
	bool asked, fails; /* request->fails was called for the result, and its answer */
	/* Set by the caller: the original fails in a replay; or why it could not be replayed. */
	bool replayed;
	char why[256];
	enum cause cause;
	double confidence, confidence_left;
};

/* Reduce the set and write the result to the directory `path`, which must not exist: the trace of
 * the process and of its supervisor. 0; negative with err and no directory: nothing failed, or the
 * cause is unknown. */
int reduce_set(const struct trace_set *set, const struct verdict_result *verdict,
    const struct reduce_request *request, const char *path, struct reduce_result *out,
    struct err *err);

/* Remove the directory that reduce_set() made, if it exists. */
void reduce_remove(const char *path);

/* --- inside reduce/ --- */

struct search {
	struct record *record;
	const struct verdict_result *verdict; /* of the set */
	uint8_t *kept; /* by unit */
	uint8_t *trial, *before, *used;
	/* Return whether the kept units still fail the same way: 1, 0, or negative with err. */
	int (*check)(void *arg, const struct search *s, struct err *err);
	void *arg;
	/* By unit: the portion, from 1, in which the present way of the search left it out. */
	uint32_t *portion;
	uint32_t portions; /* portions that this way has left out so far */
	bool taking;
	struct {
		enum cause cause;
		char function[256];
		double confidence;
		enum failure_kind kind;
		enum limit_kind limit;
		uint64_t requested;
		size_t stack_count;
		uint32_t stack_id; /* of its innermost symbol */
		enum torch_match_kind match; /* of the model of PyTorch's allocator */
		uint64_t unaccounted; /* bytes, without their sign */
	} same; /* what must stay the same */
	int64_t excess; /* bytes by which the peak before the failure was higher */
	double deadline; /* CLOCK_MONOTONIC, seconds */
	const volatile sig_atomic_t *stop;
	uint32_t trials;
	char words[64]; /* of the round, for the progress line */
	uint32_t rounds, ways; /* rounds begun; ways taken in this round */
	uint64_t events; /* events kept */
	struct search_left {
		double confidence;
		uint64_t limit; /* bytes, as the verdict has it */
	} left, whole; /* the verdict on the rest, and on the original */
};

/* Begin a search with every unit kept. 0; negative with err. */
int search_begin(struct search *s, struct record *record, const struct verdict_result *verdict,
    double seconds, struct err *err);
void search_fini(struct search *s);
/* Try every unit that can be left out, in one round. 0, negative with err. */
int search_round(struct search *s, struct err *err);
bool search_is_late(const struct search *s);

#endif
