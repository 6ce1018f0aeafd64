/*
 * supervised.h - what `whyoom run` saw of a process from outside: its levels, its end, the cgroup's
 * counters. Read from the supervisor's own trace.
 */
#ifndef ANALYZER_VERDICT_SUPERVISED_H
#define ANALYZER_VERDICT_SUPERVISED_H

#include "model/feed.h"
#include "model/model.h"

struct supervised {
	uint32_t pid;
	uint64_t stack_each;
	struct levels last; /* the newest sample of each key, times in the process' own clock */
	struct levels first; /* the oldest */
	struct levels highest; /* the sample with the most resident bytes */
	/* Of the cgroup, once its killer had struck: what others have there, the dead gave nothing
	 * of back. Shared memory as soon as it was seen, the rest when our own child was gone. */
	struct levels after;
	/* By their own samples, private bytes that other processes got since the cgroup was last
	 * seen as a whole. */
	uint64_t others_grown;
	uint64_t beside_ns; /* how far MODEL_LEVEL_BESIDE was from the cgroup's sample */
	struct levels fallen; /* newer than `last`, and perhaps of the process while it died */
	struct timeline resident; /* samples of TRACE_LEVEL_RSS, over the run */
	/* The killer has struck since the process was last seen. */
	bool struck;
	bool finished; /* the supervisor watched to the end of its own child */
	bool ended;
	uint32_t how, code; /* enum trace_end; status or signal */
	uint64_t ended_ns;
	/* The process that was started: SIGKILL took it, and when; 0: it did not. */
	uint32_t root_killed;
	uint64_t root_killed_ns;
};

/* A process whose own end nobody saw, and that was there to the last when the one that was started
 * was killed by SIGKILL: the pid of that, else 0. `last_ns`: of its latest event. */
uint32_t supervised_killed_with(const struct supervised *s, uint64_t last_ns);

/* Whose samples: `shift_ns` is added to the supervisor's times, `stack_each` is the size of a
 * thread's stack unless the program says otherwise; 0: not known. */
struct supervised_of {
	uint32_t pid;
	int64_t shift_ns;
	uint64_t stack_each;
};

/* Of the process itself: what it noted at its start. */
uint64_t supervised_stack_each(const struct feed *own);

/* Reads the whole feed for one process. 0 or negative. */
int supervised_read(
    struct feed *feed, const struct supervised_of *of, struct supervised *out, struct err *err);

#endif
