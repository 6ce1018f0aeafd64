/*
 * torch_trial.h - one run of the allocator's model along the record: the plain one, whose device
 * does what the record shows, or one with a change, whose device has so much room. torch_replay.c's
 * own.
 */
#ifndef ANALYZER_MODEL_TORCH_TRIAL_H
#define ANALYZER_MODEL_TORCH_TRIAL_H

#include "model/torch/caching_allocator.h"
#include "model/torch/torch_record.h"
#include "model/torch/torch_replay.h"
#include "model/torch/torch_streams.h"

struct torch_due {
	uint64_t time_ns, address, tag;
	uint32_t late; /* 1 + index of the one that it is about; 0: what lies at the address */
	bool ask; /* else a release */
	bool end; /* of the work that a block was for: it may be released */
};

/* A block that is asked for later than it was recorded. */
struct torch_late {
	struct torch_step step;
	struct caching_where where;
	struct caching_block *block; /* NULL: not now */
	uint64_t delay, end;
	bool gone; /* released, be it before it was had */
};

struct torch_trial {
	struct torch_record *record;
	const struct torch_streams *streams;
	const struct torch_change *change; /* NULL: the plain one */
	struct caching_settings settings;
	bool same_split; /* blocks may be split as in the record */
	struct caching_allocator *allocator;
	struct map held; /* recorded address to block */
	VEC(struct torch_due) due; /* a heap, the earliest first */
	VEC(struct torch_late) late;
	struct map late_at; /* recorded address to 1 + index, until the record's release */
	uint32_t asking; /* 1 + index of the one that is asked for; 0: the step's own */

	/* The device. */
	struct ranges taken;
	uint64_t first_address; /* below which it takes nothing; 0: none was taken */
	uint64_t next_address; /* where the record has none to offer */
	uint64_t full_size, full_until; /* below that is no place for so much; until 0: not known */
	bool parted; /* what is taken is no longer what the record had taken */
	uint64_t used, room;
	uint64_t memory, allowed;

	/* The step that is being tried. */
	const struct torch_step *step;
	struct caching_where where;
	uint64_t end; /* of its work, ns after its block was asked for; UINT64_MAX: not known */

	bool stopped;
	struct torch_outcome outcome;

	/* The plain one: where it first parts from the record. */
	bool differs;
	uint64_t recorded, modelled;
};

int torch_trial_init(struct torch_trial *t, struct torch_record *record,
    const struct torch_streams *streams, const struct caching_settings *settings,
    const struct torch_change *change);
void torch_trial_fini(struct torch_trial *t);

/* Tries one step. `flush`: the program emptied the cache before it; `least`: what the device is
 * known to have had room for, 0: nothing is known. 0 or -ENOMEM. */
int torch_trial_step(struct torch_trial *t, const struct torch_step *step,
    struct caching_where where, bool flush, uint64_t least);
/* The graphs of a private pool are gone. */
void torch_trial_retire(struct torch_trial *t, uint64_t pool);
/* 0 or -ENOMEM. */
int torch_trial_finish(struct torch_trial *t);

#endif
