/*
 * device_rewrite.h - turns a finding's claims into a rewrite of PyTorch's requests on a device, for
 * the model of its allocator: how much a call site may hold, how large its blocks may be, how long
 * they live, and how much smaller the refused request is.
 */
#ifndef ANALYZER_VERDICT_DEVICE_REWRITE_H
#define ANALYZER_VERDICT_DEVICE_REWRITE_H

#include "detect/detect.h"
#include "model/request/lengths.h"
#include "model/torch/torch_replay.h"

struct device_rewrite {
	const struct callsites *callsites;
	struct device_rule *rules; /* by call site */
	struct {
		/* time of the refusal; bytes that the request is smaller by */
		uint64_t time_ns, less;
		uint32_t stack; /* its stack, once the replay has met it; 0: unknown */
	} failed; /* the refused request; time_ns 0: none */
	const struct lengths *lengths; /* shortens inputs to `most`; NULL: leaves them */
	double most;
	struct caching_settings settings; /* the recorded settings; the caller may change them */
};

/* The call sites must outlive the rewrite. 0 or -ENOMEM. */
int device_rewrite_init(
    struct device_rewrite *w, const struct callsites *callsites, const struct caching_settings *as);
void device_rewrite_fini(struct device_rewrite *w); /* accepts a zeroed struct */

/* Add a claim. Of two bounds on a call site the lower one counts. */
void device_rewrite_rule(
    struct device_rewrite *w, uint32_t callsite, enum rule rule, uint64_t value);
/* Let the call site hold `growth` bytes beyond its first block, unless it has a rule. */
void device_rewrite_cap(struct device_rewrite *w, uint32_t callsite, uint64_t growth);

/* Fill *out, which refers to the rewrite. When a call site may hold no more, its newest blocks are
 * dropped: the sum is the same as if the oldest were. */
void device_rewrite_change(struct device_rewrite *w, struct torch_change *out);

#endif
