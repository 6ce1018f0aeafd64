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
	uint64_t size, data; /* of the address space, and what RLIMIT_DATA is compared with */
	/* Of the address space, what no allocator of the program's takes: files, shared mappings,
	 * stacks. As seen last. */
	uint64_t beside;
};

struct recorded {
	VEC(struct recorded_sample) samples;
};

/* `supervisor` may be NULL; `shift_ns` is added to its times. Both are rewound. 0, or negative with
 * err. */
int recorded_read(struct feed feed, struct feed *supervisor, int64_t shift_ns, struct recorded *out,
    struct err *err);
void recorded_fini(struct recorded *r);

#endif
