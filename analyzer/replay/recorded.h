/*
 * recorded.h - the measurements of a process while it ran, by time: its resident memory and its
 * address space. They come from its own trace and its supervisor's.
 */
#ifndef ANALYZER_REPLAY_RECORDED_H
#define ANALYZER_REPLAY_RECORDED_H

#include <stdbool.h>
#include <stdint.h>

#include "model/feed.h"
#include "util/vec.h"

/* A sample, in bytes; 0: unknown at that time. */
struct recorded_sample {
	uint64_t time_ns; /* since the process started */
	uint64_t resident; /* in all */
	uint64_t anonymous; /* resident private memory without a file */
	uint64_t of_files; /* the rest of the resident memory */
	uint64_t peak; /* of resident memory so far */
	bool unsure; /* .anonymous is derived, while .of_files changed much around it */
	uint64_t size, data; /* of the address space, and what RLIMIT_DATA counts */
	/* Address space that no allocator takes (files, shared mappings, stacks), as last seen. */
	uint64_t beside;
	/* In use in the cgroup or the machine, without the process's anonymous bytes and without
	 * memory that the kernel reclaims before it kills. */
	uint64_t group, machine;
	uint64_t files; /* reclaimable bytes of the cgroup */
	/* In force at that time; UINT64_MAX: none. */
	uint64_t limit_as, limit_data;
};

struct recorded {
	VEC(struct recorded_sample) samples;
	/* The peak of resident memory, if it came after the last sample; 0: it came before, or is
	 * unknown. And the peak until that sample. */
	uint64_t end_peak, peak_before;
	uint64_t most; /* the peak of resident memory in all; 0: unknown */
	bool gaps; /* some acquisitions are not recorded */
	uint64_t thread_stack; /* address space of a thread's stack with its guard; 0: unknown */
	/* The curve of anonymous bytes: the end of its first half, and its fastest growth in that
	 * half; 0: nothing was measured, or it did not grow. */
	uint64_t half_ns;
	double pace; /* bytes a ns */
};

/* Read the measurements. `supervisor` may be NULL; `shift_ns` is added to its times. Rewinds both
 * feeds. 0, or negative with err. */
int recorded_read(struct feed feed, struct feed *supervisor, int64_t shift_ns, struct recorded *out,
    struct err *err);
void recorded_fini(struct recorded *r);

#endif
