/*
 * put_off.h - what if only so many requests had been in flight at a time? Those beyond wait until
 * one has ended, in the order in which they came, and then do what they did: a shift in time of
 * what they asked PyTorch's allocator for on a device, or malloc on the host.
 *
 * A request is one that was marked or whose frames show it; where there are none, the thread or
 * task that held alike with others at the moment, or that ended before it. One that was still in
 * flight when the record ended lets go of all that it has then, as if it had ended; and so does one
 * that was refused memory and now is not.
 */
#ifndef ANALYZER_VERDICT_PUT_OFF_H
#define ANALYZER_VERDICT_PUT_OFF_H

#include "model/torch/torch_replay.h"
#include "verdict/result.h"

/* One request, or a thread or task that stands for one. */
struct put_off_unit {
	uint64_t start_ns, end_ns;
	uint64_t worker; /* event_worker(), of a thread or task */
	uint64_t blocks; /* asked for there; of other units nothing is put off */
	int64_t left; /* host: bytes that it has not given back */
	bool ended; /* else the record did before it */
	bool refused;
	bool request; /* a thread or task may be none */
};

/* Of the host: bytes more that live, or less. */
struct put_off_change {
	uint64_t time_ns;
	int64_t bytes;
	uint32_t owner; /* as in owners */
};

struct put_off {
	VEC(struct put_off_unit) units; /* in the order of their beginning */
	/* By serial of the device's requests, or of the host's blocks, less 1: 1 + unit, 0:
	 * nobody's. */
	VEC(uint32_t) owners;
	VEC(struct put_off_change) changes; /* host */
	uint64_t last_ns; /* the record's end */
};

#define PUT_OFF_HOST UINT32_MAX

/* One pass over the feed; `device` is N of torch:N, or PUT_OFF_HOST. 0, or negative with err. */
int put_off_read(const struct verdict_result *r, struct feed feed, uint32_t device,
    struct put_off *out, struct err *err);
void put_off_fini(struct put_off *p);

/* At most so many at a time: by how much each unit is put off. */
struct put_off_schedule {
	const struct put_off *of;
	uint64_t *delays; /* by unit */
	bool *granted; /* by unit: what it was refused, in the replay */
	uint64_t waited; /* units that were put off */
};
/* 0 or -ENOMEM. The units stay the caller's. */
int put_off_schedule(const struct put_off *p, uint64_t most, struct put_off_schedule *out);
void put_off_schedule_fini(struct put_off_schedule *s); /* accepts what is all zero */
/* Of the host: the most that lives, as put off, with what was refused; and what lived at the
 * moment. What is nobody's is as it was until then, and stays so. 0 or -ENOMEM. */
int put_off_peak(
    const struct put_off_schedule *s, uint64_t moment_ns, uint64_t *peak, uint64_t *live);
/* Of a device. The shift refers to the schedule. */
struct torch_shift put_off_shift(struct put_off_schedule *s);

#endif
