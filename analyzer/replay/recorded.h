/*
 * recorded.h - what was measured of a process while it ran, in the order of time: how much was
 * resident, and how large its address space was. From its own trace and from its supervisor's.
 */
#ifndef ANALYZER_REPLAY_RECORDED_H
#define ANALYZER_REPLAY_RECORDED_H

#include <stdbool.h>
#include <stdint.h>

#include "model/feed.h"
#include "util/vec.h"

/* Bytes; 0: not known then. */
struct recorded_sample {
	uint64_t time_ns; /* since the process' start */
	uint64_t resident; /* all of it */
	uint64_t anonymous; /* of it, private memory without a file */
	uint64_t of_files; /* of it, the rest */
	uint64_t peak; /* the most that ever was resident, until then */
	bool unsure; /* .anonymous is derived, and what is of files changed much around it */
	uint64_t size, data; /* of the address space, and what RLIMIT_DATA is compared with */
	/* Of the address space, what no allocator of the program's takes: files, shared mappings,
	 * stacks. As seen last. */
	uint64_t beside;
	/* In use of the memory that its cgroup, or all of the machine, may have, beside the
	 * process' anonymous bytes; without what the kernel takes back before it kills. */
	uint64_t group, machine;
	uint64_t files; /* of a cgroup's bytes, what is taken back */
	/* In force then; UINT64_MAX: none. */
	uint64_t limit_as, limit_data;
};

struct recorded {
	VEC(struct recorded_sample) samples;
	/* The most that ever was resident, when it was that after the last look before the end; 0:
	 * earlier, or nobody knows. And the most until that look. */
	uint64_t end_peak, peak_before;
	uint64_t most; /* that ever was resident, to the very end; 0: not known */
	bool gaps; /* not all of what the program acquired is recorded */
	uint64_t thread_stack; /* bytes of address space, as seen: with its guard; 0: not known */
	/* Of the anonymous bytes' curve, by time: where its first half ends, and how fast it grew
	 * at most in that; 0: nothing was measured, or it did not grow. */
	uint64_t half_ns;
	double pace; /* bytes a ns */
};

/* `supervisor` may be NULL; `shift_ns` is added to its times. Both are rewound. 0, or negative with
 * err. */
int recorded_read(struct feed feed, struct feed *supervisor, int64_t shift_ns, struct recorded *out,
    struct err *err);
void recorded_fini(struct recorded *r);

#endif
