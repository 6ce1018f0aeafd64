/*
 * device_rewrite.h - the claims of a finding as a rewrite of what PyTorch asked for on a device, so
 * that the model of its allocator can be asked: what a place may hold, how large its blocks may be,
 * how long they live, and how much less the refused request is.
 */
#ifndef ANALYZER_VERDICT_DEVICE_REWRITE_H
#define ANALYZER_VERDICT_DEVICE_REWRITE_H

#include "detect/detect.h"
#include "model/request/lengths.h"
#include "model/torch/torch_replay.h"

struct device_rewrite {
	const struct callsites *callsites;
	struct device_rule *rules; /* by place */
	struct {
		uint64_t time_ns, less; /* when it was refused, and the bytes it is smaller by */
	} failed; /* the request that it is about; time_ns 0: there is none */
	const struct lengths *lengths; /* inputs are no longer than `most`; NULL: as they were */
	double most;
	struct caching_settings settings; /* the record's, to be changed at will */
};

/* The places stay the caller's, for as long as the rewrite. 0 or -ENOMEM. */
int device_rewrite_init(
    struct device_rewrite *w, const struct callsites *callsites, const struct caching_settings *as);
void device_rewrite_fini(struct device_rewrite *w); /* accepts what is all zero */

/* Of two bounds on a place the lower one holds. */
void device_rewrite_rule(
    struct device_rewrite *w, uint32_t callsite, enum rule rule, uint64_t value);
/* The place may hold that much beyond its first block, where no rule says otherwise. */
void device_rewrite_cap(struct device_rewrite *w, uint32_t callsite, uint64_t growth);

/* Of what a place may hold, the newest go without: the sum is the same as if the oldest went. The
 * change refers to the rewrite. */
void device_rewrite_change(struct device_rewrite *w, struct torch_change *out);

#endif
