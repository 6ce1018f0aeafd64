/*
 * device.h - a device's side of the answer: the refused request, the device's memory at that time,
 * and the call sites that held it. device_cause.h finds why it was refused.
 */
#ifndef ANALYZER_VERDICT_DEVICE_H
#define ANALYZER_VERDICT_DEVICE_H

#include "model/space/space.h"
#include "model/torch/torch_replay.h"
#include "verdict/result.h"

#define DEVICE_STACK_STATS_LIST 5u

struct device_stack_stats {
	const char *function, *file; /* file NULL, line 0: unknown */
	uint32_t line;
	uint64_t bytes, blocks;
	uint64_t largest; /* live block; 0: unknown */
	struct stack_view stack;
	size_t frame; /* index of the call site's frame in the stack */
};

/* Another setting of PyTorch's allocator: would it have granted the refused request? `headroom` as
 * in struct torch_outcome. */
enum device_setting_kind { DEVICE_EXPANDABLE, DEVICE_MAX_SPLIT };
struct device_setting {
	enum device_setting_kind kind;
	const char *change;
	bool fits;
	int64_t headroom;
};
#define DEVICE_SETTINGS 2u

struct device_report {
	char device[32]; /* "cuda:0" */
	uint32_t number;
	bool failed; /* it refused the request of the report */
	const char *at; /* "failure" of any device, or "peak" of this one */
	uint64_t time_ns;

	/* The fields below are set with `failed`. */
	char space[32]; /* the space that refused */
	char below[32]; /* the space asked for a segment; "": none */
	uint64_t requested, segment; /* bytes; segment 0: none requested */
	uint64_t attempts;
	const char *api;
	size_t frame; /* of the request, in the failure's stack */
	uint64_t peak_reserved; /* by the driver's events */
	struct device_setting settings[DEVICE_SETTINGS];
	size_t setting_count;
	struct torch_match match; /* how well the model of PyTorch fits; requests 0: not asked */
	bool above; /* the runtime refused it without asking the driver */
	bool unsaid; /* PyTorch refused, but did not record it: `requested` is its segment */
	/* PyTorch's own limit that refused, bytes, or its largest possible value; 0: none. */
	uint64_t capped;

	bool torch; /* there is a PyTorch allocator on this device */
	uint64_t reserved, allocated; /* as PyTorch says */
	bool reserved_known;
	/* live by PyTorch's count, but without an event since a checkpoint */
	uint64_t hidden_bytes;
	uint64_t segments, segment_bytes, live_bytes, live_blocks;
	uint64_t holes, hole_bytes, largest_hole;
	uint64_t free, total; /* as the driver says */
	bool free_known;
	int64_t unattributed;
	uint64_t explained; /* by the process's events */
	/* Used by other processes and by this one, as seen from outside; others: or at least what
	 * their own traces say. */
	uint64_t others, own;
	bool others_known, own_known;
	const struct device_sample *samples; /* of the whole run, by time; the model's */
	size_t sample_count;
	/* The blocks to release for room inside a segment. */
	bool room;
	uint64_t room_blocks, room_bytes;

	struct device_stack_stats stats_list[DEVICE_STACK_STATS_LIST]; /* most live bytes first */
	size_t stack_stats_count;
	struct ledger ledger;

	const char *cuda, *torch_blocks; /* how they were recorded; NULL: not recorded */
	uint64_t retried; /* attempts that were granted later */
	uint64_t other_results; /* attempts that failed for another reason */
};

/* A space beside the host's: its blocks at the moment and at its peak. */
struct space_report {
	const char *name; /* the model's */
	uint64_t live_bytes, live_blocks, peak_bytes, peak_ns;
};

/* True if a device's refusal is the failure to report: the process did not recover from it, and the
 * host did not fail later. */
bool device_failed(const struct verdict_result *r);

/* True if PyTorch's allocator refused, on the device that failed. */
bool device_is_torch(const struct device_report *d);

/* The refusal of the report. */
struct device_refusal {
	struct model *then; /* the process at that time; the caller's. NULL: no device refused */
	struct device_failure failure; /* PyTorch's, if its driver refused it a segment */
};
/* Fill r->devices with the devices that have spaces: the one that refused first, or else the one
 * that held most. Call it after the host was judged. -ENOMEM or another negative errno with err. */
int device_read(
    struct verdict_result *r, struct feed feed, struct device_refusal *refusal, struct err *err);

/* Make d->ledger again, once r->ranking tells the cause of each live block. 0 or -ENOMEM. */
int device_account(
    const struct verdict_result *r, struct device_report *d, const struct model *then);

#endif
