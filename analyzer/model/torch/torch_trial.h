/*
 * torch_trial.h - one run of the allocator's model along the record: the plain run, whose device
 * does what the record shows, or a changed run, whose device has a given size. Only torch_replay.c
 * uses it.
 */
#ifndef ANALYZER_MODEL_TORCH_TRIAL_H
#define ANALYZER_MODEL_TORCH_TRIAL_H

#include "model/torch/caching_allocator.h"
#include "model/torch/torch_record.h"
#include "model/torch/torch_replay.h"
#include "model/torch/torch_streams.h"

struct torch_due {
	uint64_t time_ns, address, tag;
	uint32_t late; /* 1 + index of its torch_late; 0: the block at the address */
	bool ask; /* a request; false: a release */
	bool end; /* end of a block's work: it may be released */
};

/* A block that is requested later than recorded. */
struct torch_late {
	struct torch_step step;
	struct caching_where where;
	struct caching_block *block; /* NULL: not live */
	uint64_t delay, end;
	bool gone; /* released, perhaps before it was requested */
};

struct torch_trial {
	struct torch_record *record;
	const struct torch_streams *streams;
	const struct torch_change *change; /* NULL: the plain run */
	struct caching_settings settings;
	bool same_split; /* blocks may be split as in the record */
	struct caching_allocator *allocator;
	struct map held; /* recorded address to block */
	VEC(struct torch_due) due; /* a heap, the earliest first */
	VEC(struct torch_late) late;
	struct map late_at; /* recorded address to 1 + index, until the recorded release */
	uint32_t asking; /* 1 + index of the current request; 0: the step's own */

	/* The device. */
	struct ranges taken;
	uint64_t first_address; /* it takes nothing below; 0: none was taken */
	uint64_t next_address; /* for allocations without a recorded address */
	uint64_t full_size, full_until; /* no room for full_size below full_until; 0: unknown */
	bool parted; /* the taken addresses differ from the recorded ones */
	uint64_t used, room;
	uint64_t memory, allowed;

	/* The current step. */
	const struct torch_step *step;
	struct caching_where where;
	uint64_t end; /* of its work, in ns after its block's request; UINT64_MAX: unknown */

	bool stopped;
	struct torch_outcome outcome;

	/* The plain run: where it first differs from the record. */
	bool differs;
	uint64_t recorded, modelled;
};

int torch_trial_init(struct torch_trial *t, struct torch_record *record,
    const struct torch_streams *streams, const struct caching_settings *settings,
    const struct torch_change *change);
void torch_trial_fini(struct torch_trial *t);

/* Try one step. `flush`: the program emptied the cache before it. `least`: room that the device is
 * known to have had, 0: unknown. 0 or -ENOMEM. */
int torch_trial_step(struct torch_trial *t, const struct torch_step *step,
    struct caching_where where, bool flush, uint64_t least);
/* Retire a private pool whose graphs are gone. */
void torch_trial_retire(struct torch_trial *t, uint64_t pool);
/* 0 or -ENOMEM. */
int torch_trial_finish(struct torch_trial *t);

#endif
