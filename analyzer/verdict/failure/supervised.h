/*
 * supervised.h - what `whyoom run` saw of a process from outside: its levels, its end, the cgroup's
 * counters. It comes from the supervisor's own trace.
 */
#ifndef ANALYZER_VERDICT_SUPERVISED_H
#define ANALYZER_VERDICT_SUPERVISED_H

#include "model/feed.h"
#include "model/model.h"
#include "util/tuned.h"

TUNED(uint64_t, SUPERVISED_BATCH, 64,
    "the kernel counts resident pages in batches, to within a percent");
TUNED(uint64_t, SUPERVISED_BELOW_OWN, 8,
    "cgroup and process are sampled one after the other, and differ by less while both live");

struct supervised {
	uint32_t pid;
	uint64_t stack_each;
	struct levels last; /* the newest sample of each key, in the process's own time */
	struct levels first; /* the oldest */
	struct levels highest; /* the sample with the most resident bytes */
	/* The cgroup after its killer struck, without the dead process's memory: shared memory at
	 * once, anonymous memory once the supervisor's own child was gone. */
	struct levels after;
	/* Growth of other processes' private bytes since the cgroup's last sample. */
	uint64_t others_grown;
	uint64_t beside_ns; /* time between MODEL_LEVEL_BESIDE and the cgroup's sample */
	struct levels fallen; /* newer than `last`, but perhaps of a dying process */
	struct timeline resident; /* samples of TRACE_LEVEL_RSS, over the run */
	bool struck; /* the killer struck since the process's last sample */
	bool finished; /* the supervisor saw the end of its own child */
	bool ended;
	uint32_t how, code; /* enum trace_end; status or signal */
	uint64_t ended_ns;
	/* Pid of the started process if SIGKILL ended it, and the time; else 0. */
	uint32_t root_killed;
	uint64_t root_killed_ns;
};

/* Return the pid of the started process, if SIGKILL ended it while this process, whose own end
 * nobody saw, still ran; else 0. `last_ns` is the time of this one's last event. */
uint32_t supervised_killed_with(const struct supervised *s, uint64_t last_ns);

/* The process to read. */
struct supervised_of {
	uint32_t pid;
	int64_t shift_ns; /* from the supervisor's clock to the process's */
	uint64_t stack_each; /* default size of a thread's stack, bytes; 0: not known */
};

/* Return stack_each, as the process itself noted it at its start. */
uint64_t supervised_stack_each(const struct feed *own);

/* Read the supervisor's whole feed for one process. 0; negative errno with err. */
int supervised_read(
    struct feed *feed, const struct supervised_of *of, struct supervised *out, struct err *err);

#endif
