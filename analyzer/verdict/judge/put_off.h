/*
 * put_off.h - what if only N requests had been in flight at a time? The others wait in the order of
 * their arrival until one has ended, and then do the same work: their requests to PyTorch's
 * allocator on a device, or to malloc on the host, are shifted in time.
 *
 * A unit is a request that was marked or that its frames show. Without such requests, it is a
 * thread or task that held alike with others at the moment, or that ended before it. A unit still
 * in flight at the end of the recording releases everything that it holds there; so does a unit
 * whose refused request is now granted.
 */
#ifndef ANALYZER_VERDICT_PUT_OFF_H
#define ANALYZER_VERDICT_PUT_OFF_H

#include "model/torch/torch_replay.h"
#include "verdict/result.h"

/* One request, or a thread or task that stands for one. */
struct put_off_unit {
	uint64_t start_ns, end_ns;
	uint64_t worker; /* event_worker() of a thread or task */
	uint64_t blocks; /* requests made there; a unit without any is not put off */
	int64_t left; /* host: bytes not freed */
	bool ended; /* false: the recording ended before it */
	bool refused;
	bool request; /* false: a thread or task that is no request */
};

/* On the host: a change of the live bytes. */
struct put_off_change {
	uint64_t time_ns;
	int64_t bytes;
	uint32_t owner; /* as in owners */
};

struct put_off {
	VEC(struct put_off_unit) units; /* in order of their begin */
	/* By serial - 1 of the device's requests or the host's blocks: 1 + unit; 0: none. */
	VEC(uint32_t) owners;
	VEC(struct put_off_change) changes; /* host only */
	uint64_t last_ns; /* end of the recording */
};

#define PUT_OFF_HOST UINT32_MAX

/* Read the units in one pass over the feed. `device` is N of torch:N, or PUT_OFF_HOST. Call
 * put_off_fini() in any case. 0; negative errno with err. */
int put_off_read(const struct verdict_result *r, struct feed feed, uint32_t device,
    struct put_off *out, struct err *err);
void put_off_fini(struct put_off *p);

/* The delay of each unit. */
struct put_off_schedule {
	const struct put_off *of;
	uint64_t *delays; /* by unit */
	bool *granted; /* by unit: the replay granted its refused request */
	uint64_t waited; /* units that were put off */
};
/* Schedule units, at most `most` at a time. They must outlive the schedule. 0 or -ENOMEM. */
int put_off_schedule(const struct put_off *p, uint64_t most, struct put_off_schedule *out);
void put_off_schedule_fini(struct put_off_schedule *s); /* accepts a zeroed struct */
/* On the host: set *peak to the peak of live bytes under the schedule, including the refused
 * request, and *live to the live bytes at the moment in the recording. Blocks of no unit are as
 * recorded until the moment, and stay. 0 or -ENOMEM. */
int put_off_peak(
    const struct put_off_schedule *s, uint64_t moment_ns, uint64_t *peak, uint64_t *live);
/* On a device: return the schedule as a shift for torch_replay(). It refers to *s. */
struct torch_shift put_off_shift(struct put_off_schedule *s);

#endif
