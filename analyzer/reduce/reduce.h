/*
 * reduce.h - the smallest trace that still fails for the same cause: delta debugging over what a
 * process acquired, by requests, by places and by time. What is left out was never acquired; limits
 * and measurements are less by it.
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
	double seconds; /* to search for at most */
	/* Becomes true when somebody wants it to end: with what it has. NULL: nobody will. */
	const volatile sig_atomic_t *stop;
	/* Asked of each trace that is made, on the disk: does it fail where the whole one did? 1, 0
	 * or negative with err. NULL: nobody asks. */
	int (*fails)(void *arg, const char *path, struct err *err);
	void *arg;
};

struct reduce_result {
	uint64_t events, events_left; /* of the process, its supervisor's not counted */
	uint64_t blocks, blocks_left; /* acquisitions, mappings and blocks on devices */
	uint64_t limit_less; /* bytes that the limit is less by */
	uint32_t trials;
	bool ended; /* before the time was up */
	bool asked, fails; /* request->fails, of what was made */
	/* The caller's: the whole one fails when it is replayed; or why it could not be. */
	bool replayed;
	char why[256];
	enum cause cause;
	double confidence, confidence_left;
};

/* Makes the directory `path`, which must not be there yet: the process' trace and its supervisor's.
 * Nothing is left of it when that fails. 0, or negative with err: nothing failed in it, or why
 * nothing is known. */
int reduce_set(const struct trace_set *set, const struct verdict_result *verdict,
    const struct reduce_request *request, const char *path, struct reduce_result *out,
    struct err *err);

/* What was made there, if anything: a directory of files. */
void reduce_remove(const char *path);

/* --- inside reduce/ --- */

struct search {
	struct record *record;
	const struct verdict_result *verdict; /* of the set */
	uint8_t *kept; /* by unit */
	uint8_t *trial, *before, *used;
	/* Is what is kept still a failure? 1, 0, or negative with err. */
	int (*check)(void *arg, const struct search *s, struct err *err);
	void *arg;
	uint32_t
	    *portion; /* by unit: with which it was left out by the way that is taken, from 1 */
	uint32_t portions; /* that this way has left out; they are counted while it is taken */
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
	} same; /* what must stay */
	int64_t excess; /* bytes by which more lived before than at the failure */
	double deadline; /* CLOCK_MONOTONIC, seconds */
	const volatile sig_atomic_t *stop;
	uint32_t trials;
	char words[64]; /* of the round, for whoever waits */
	uint32_t rounds, ways; /* begun; taken in this one */
	uint64_t events; /* that are left */
	struct search_left {
		double confidence;
		uint64_t limit; /* bytes, as the verdict has it */
	} left, whole; /* the verdict on what is left, and on all of it */
};

/* Everything is kept. 0; negative with err. */
int search_begin(struct search *s, struct record *record, const struct verdict_result *verdict,
    double seconds, struct err *err);
void search_fini(struct search *s);
/* One round over all that can be left out. 0, negative with err. */
int search_round(struct search *s, struct err *err);
bool search_is_late(const struct search *s);

/* What is kept, as a directory of traces. 0 or negative with err. */
int save_traces(const struct search *s, const struct trace_set *set, const char *path,
    struct view *view, struct err *err);

#endif
