/*
 * device.h - a device's side of the answer: what was refused, what its memory looked like then, and
 * which call sites held it. device_cause.h says why it was refused.
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
	uint64_t largest; /* live block; 0: not known */
	struct stack_view stack;
	size_t frame; /* index of the call site's frame in it */
};

/* Another setting of PyTorch's allocator: would it have granted the refused request? `headroom` is
 * as in struct torch_outcome. */
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
	bool failed; /* it refused the request that the report is about */
	const char *at; /* "failure" of whichever device, or "peak" of this one */
	uint64_t time_ns;

	/* With failed: */
	char space[32]; /* that refused */
	char below[32]; /* that was asked for a segment; "": none was */
	uint64_t requested, segment; /* bytes; segment 0: none was asked for */
	uint64_t attempts;
	const char *api;
	size_t frame; /* of the failure's stack: the one that made the request */
	uint64_t peak_reserved; /* as the driver's events show */
	struct device_setting settings[DEVICE_SETTINGS];
	size_t setting_count;
	struct torch_match match; /* how well the model of PyTorch fits; requests 0: not asked */
	bool above; /* the runtime refused it without asking the driver */
	bool unsaid; /* PyTorch refused it, and recorded nothing: `requested` is its segment */
	/* PyTorch's own limit that refused, bytes; 0: none did. Where no setting tells it, the
	 * largest that it can have been. */
	uint64_t capped;

	bool torch; /* there is a PyTorch allocator on this device */
	uint64_t reserved, allocated; /* as PyTorch says */
	bool reserved_known;
	uint64_t hidden_bytes; /* live by PyTorch's count, but in no event since a checkpoint */
	uint64_t segments, segment_bytes, live_bytes, live_blocks;
	uint64_t holes, hole_bytes, largest_hole;
	uint64_t free, total; /* as the driver says */
	bool free_known;
	int64_t unattributed;
	uint64_t explained; /* by the process' events */
	uint64_t others, own; /* used by other processes and by this one, as seen from outside */
	bool others_known, own_known;
	const struct device_sample *samples; /* the whole run's, by time; the model owns them */
	size_t sample_count;
	/* What would have to go to make room inside a segment. */
	bool room;
	uint64_t room_blocks, room_bytes;

	struct device_stack_stats stats_list[DEVICE_STACK_STATS_LIST]; /* most live bytes first */
	size_t stack_stats_count;
	struct ledger ledger;

	const char *cuda, *torch_blocks; /* how they were recorded; NULL: there are none */
	uint64_t retried; /* attempts that were granted */
	uint64_t other_results; /* attempts that failed for another reason */
};

/* A space beside the host's: its blocks at the moment and at its peak. */
struct space_report {
	const char *name; /* the model's */
	uint64_t live_bytes, live_blocks, peak_bytes, peak_ns;
};

/* Is a device's refusal the failure to report? Nobody recovered from it, and the host did not fail
 * later. */
bool device_failed(const struct verdict_result *r);

/* The refusal that the report is about. */
struct device_refusal {
	struct model *then; /* the process as it was; the caller's. NULL: no device refused */
	struct device_failure failure; /* as PyTorch's, where its driver refused a segment */
};
/* Fill *out with the devices that have spaces: the one that refused first, else the one that held
 * most. After the host was judged. `words` keeps names. -ENOMEM or another negative errno with err;
 * the lists in *out are the caller's all the same. */
int device_read(const struct verdict_result *r, struct feed feed, struct devices *out,
    struct device_refusal *refusal, struct arena *words, struct err *err);

/* Make d->ledger again, now that r->ranking tells which cause the live blocks are charged to. 0 or
 * -ENOMEM. */
int device_account(
    const struct verdict_result *r, struct device_report *d, const struct model *then);

/* Word a refusal that no cause explains: evidence and summary (NULL: no memory). */
void device_unexplained(const struct device_report *d, struct verdict *v, struct arena *words);

#endif
