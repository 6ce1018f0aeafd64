/*
 * runs.h - finds the runs below a folder, and judges each in a process of its own.
 */
#ifndef ANALYZER_FLEET_RUNS_H
#define ANALYZER_FLEET_RUNS_H

#include <stdbool.h>

#include "util/text/err.h"
#include "util/text/str.h"
#include "util/vec.h"

/* A folder that holds traces. */
struct fleet_run {
	char *path;
	uint64_t bytes; /* of its traces */
	uint64_t changed_ns; /* the newest of them, since 1970 */
};

struct fleet_runs {
	VEC(struct fleet_run) list;
};

/* Add the runs at `path` and, if `below`, in the folders below it, by name. Links are not followed.
 * 0; negative errno with err. */
int fleet_runs_find(struct fleet_runs *runs, const char *path, bool below, struct err *err);
void fleet_runs_free(struct fleet_runs *runs);

struct fleet_judged {
	struct str report, sites; /* as `--format json` prints them */
	struct str error; /* not empty: why the run could not be judged */
};
struct verdict_result;
/* Put the report and the call sites into words. 0 or -ENOMEM. *out is zero at first; call
 * fleet_judged_free() in both cases. */
int fleet_texts(const struct verdict_result *result, struct fleet_judged *out);
void fleet_judged_free(struct fleet_judged *judged);

struct fleet_judging {
	unsigned jobs; /* at most this many at once */
	unsigned seconds; /* for one run; then it is given up */
	/* Takes each result, in any order. Not 0 ends the work. */
	int (*take)(void *self, const struct fleet_run *run, const struct fleet_judged *judged,
	    struct err *err);
	void *self;
};
/* Judge the runs at the indices. A trace that crashes or stalls its process costs that run alone.
 * 0; negative errno with err. One thread. */
int fleet_judge(const struct fleet_runs *runs, const size_t *which, size_t count,
    const struct fleet_judging *how, struct err *err);

#endif
