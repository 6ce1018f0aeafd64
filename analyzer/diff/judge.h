/*
 * judge.h - inside diff/: is the difference of a line a change of the program, or what such a line
 * varies by? Between two runs of one program the bytes of a line differ by
 *
 *   - what comes and goes: at the moment it is there or not. A difference within the largest fall
 *     of the line's live bytes is no change of what it keeps; what it takes when busy is compared
 *     by the largest bytes of each part of the run, and must differ in all parts.
 *   - how much work was done: bytes that pile up may be as many, or as many for the same work.
 *   - how many threads came to do it, if about as many did.
 *   - the sample, if the trace is one: by several standard errors, since many lines are compared.
 *   - what no run shows of itself (hash seeds, alignment, the order of imports): a small share.
 */
#ifndef ANALYZER_DIFF_JUDGE_H
#define ANALYZER_DIFF_JUDGE_H

#include "diff/diff.h"
#include "diff/series.h"
#include "util/tuned.h"

TUNED(double, RUNS_APART, 2.0,
    "of a run that did not get half as far, nobody knows what it would have held later");

struct judge {
	enum diff_by by;
	bool one_run; /* two moments of it: there is no variation between runs */
	/* How many times as much work B did, until the moment and in its whole run; 0: unknown. */
	double work, runs;
	double work_error; /* relative, of work: what is done cannot be told to the last call */
	uint64_t whole; /* bytes of the space, of the side with more */
	double errors; /* standard errors that a change needs */
};

struct judgement {
	enum diff_kind kind; /* SAME, GREW or SHRANK */
	enum diff_reason reason;
	int64_t change; /* bytes; what the reason compares */
	uint64_t excess; /* the part of it that nothing above explains */
	uint64_t noise; /* up to here nothing is a change */
};

/* Return how many standard errors keep a false change among `count` lines unlikely. At least 2. */
double judge_errors(size_t count);
/* Compare a line's series, each finished at its moment; zeroed where a side lacks the line. */
void judge_series(
    const struct judge *j, const struct series *a, const struct series *b, struct judgement *out);
/* Compare the sums of all arenas for small objects. */
void judge_arenas(
    const struct judge *j, const struct series *a, const struct series *b, struct judgement *out);
/* Return the typical largest bytes of a part of the run's second half. */
uint64_t judge_top(const struct series *s);
/* Return the bytes by that measure, and their standard error. */
uint64_t judge_bytes(const struct series *s, enum diff_by by);
double judge_error(const struct series *s, enum diff_by by);

#endif
