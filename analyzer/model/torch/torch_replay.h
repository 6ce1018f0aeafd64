/*
 * torch_replay.h - replays the requests that PyTorch made on one device, on the model of its
 * caching allocator. Unchanged, the replay shows whether the model makes the recorded segments;
 * with a change, whether every request would have been granted.
 *
 * A change may rewrite each request (keep, drop, resize, or release it early), the allocator's
 * settings and the device's memory. One pass tries any number of changes. One thread. Memory grows
 * with live blocks and segments, not with events.
 */
#ifndef ANALYZER_MODEL_TORCH_REPLAY_H
#define ANALYZER_MODEL_TORCH_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/feed.h"
#include "model/torch/caching_settings.h"

/* One recorded request. */
struct torch_block {
	uint64_t serial; /* number among the device's requests, from 1 */
	uint64_t time_ns;
	uint64_t address; /* 0: refused */
	uint64_t size; /* of the block, after PyTorch's rounding */
	uint32_t stack, thread;
	bool refused;
};

/* How to rewrite the requests. A NULL function leaves them as recorded. size() and life() are
 * called once for each request, in this order, in the record's order. */
struct torch_rewrite {
	void *arg;
	/* Return the bytes to ask for instead; 0: drop the request. */
	uint64_t (*size)(void *arg, const struct torch_block *b);
	/* Return how many ns after its request the block is released, if the record does not
	 * release it earlier. UINT64_MAX: only as recorded. */
	uint64_t (*life)(void *arg, const struct torch_block *b);
	/* A request that the record refused is granted: return the bytes that its work asks for
	 * afterwards, at once, which the record does not have. */
	uint64_t (*further)(void *arg, const struct torch_block *b);
	/* A replayed block was released; `stack` requested it, `size` is its size in the replay. */
	void (*released)(void *arg, uint32_t stack, uint64_t size);
};

/* Requests that come later than recorded. A block's request and release are each put off by that
 * many ns (0: as recorded) and take their place among the others. Requests still due at the end of
 * the record are made then. */
struct torch_shift {
	void *arg;
	/* *end: ns from the request to the end of its work; initially UINT64_MAX. */
	uint64_t (*delay)(void *arg, const struct torch_block *b, uint64_t *end);
	/* The work has ended: return true to release the block if it still lives. By serial. */
	bool (*ends)(void *arg, uint64_t serial);
	/* A request that the record refused is granted. */
	void (*granted)(void *arg, uint64_t serial);
};

/* A trial's requests to the allocator, in order, so that another allocator can get the same. */
enum torch_ask_kind {
	TORCH_ASK_BLOCK, /* serial, address (0: refused in the record), size, pool, stream */
	TORCH_ASK_RELEASE, /* address */
	TORCH_ASK_FLUSH, /* torch.cuda.empty_cache() */
	TORCH_ASK_RETIRE, /* the graphs of `pool` are gone */
};
struct torch_ask {
	enum torch_ask_kind kind;
	uint64_t serial, address, size, pool, stream;
	uint64_t room; /* bytes that the device has for segments now */
};

struct torch_change {
	const struct caching_settings *settings; /* NULL: as recorded */
	uint64_t memory; /* of the device, in bytes; 0: as recorded */
	uint64_t given_back; /* bytes that other processes free, of those that they held */
	struct torch_rewrite rewrite;
	struct torch_shift shift;
	/* Receives each request, also after the refusal that stops the replay, but without the
	 * effects of `rewrite`. May be NULL. */
	void (*told)(void *arg, const struct torch_ask *ask);
	void *told_arg;
};

/* The first request that was granted in the record and refused in the replay; without one, the last
 * one that both refused. */
struct torch_refusal {
	struct torch_block block;
	uint64_t size; /* of the request in the replay */
	uint64_t segment; /* size of the request to the device */
	uint64_t reserved, allocated; /* by the allocator then */
	uint64_t idle; /* part of reserved: whole segments, or pages, without a block */
	uint64_t largest_hole; /* the largest free piece in the request's pool */
	uint64_t room; /* bytes left on the device */
};

struct torch_outcome {
	/* The replay grants each request that the record granted, and the record's last refusal, if
	 * there is one. A replay stops at the first new refusal. */
	bool fits;
	uint64_t requests; /* made in the replay */
	uint64_t granted_refusals; /* refused in the record, and granted in the replay */
	bool refused;
	struct torch_refusal refusal; /* if refused */
	/* Fits: bytes that were left at all times, counting cached segments without a block. Does
	 * not fit: minus the bytes that were missing at the refusal. */
	int64_t headroom;
	uint64_t peak_allocated, peak_reserved;
	uint64_t end_allocated, end_reserved;
	/* Size of the device, 0: unknown; bytes that may be reserved, UINT64_MAX: all. */
	uint64_t memory, allowed;
};

enum torch_match_kind {
	TORCH_MATCH_NONE, /* no recorded block, or no such space */
	/* same segments in the same order, and same reserved bytes at each event */
	TORCH_MATCH_IDENTICAL,
	TORCH_MATCH_WITHIN, /* reserved bytes differ by at most 1 % */
	TORCH_MATCH_NOT,
};

/* How well the model reproduces the record. */
struct torch_match {
	enum torch_match_kind kind;
	uint32_t streams; /* as far as blocks show: sets of segments that share no holes */
	uint64_t requests, segments; /* recorded; segments: with pages, ever made */
	uint64_t refused; /* serial of the last request that the record refused; 0: none */
	uint64_t compared; /* events with known reserved bytes */
	double deviation; /* the largest relative difference of reserved bytes */
	/* The first difference, unless identical. */
	struct {
		uint64_t time_ns, request;
		uint64_t recorded, modelled; /* bytes of a segment, or reserved */
		const char *what; /* "segment", "reserved" */
	} first;
	const char *doubt; /* a setting unknown to the model, or NULL */
};

/* Replay all changes in two passes over the feed, which is rewound. `device` is N of torch:N.
 * `outcomes` has one element for each change; match may be NULL. 0, or negative with err. */
int torch_replay(struct feed feed, uint32_t device, const struct torch_change *changes,
    size_t count, struct torch_outcome *outcomes, struct torch_match *match, struct err *err);

/* Return the settings' text from the process's environment, or NULL. */
const char *torch_replay_conf(struct feed feed);
/* Read the settings of the process, as far as its environment shows them. False: some were not
 * understood. */
bool torch_replay_settings(struct feed feed, struct caching_settings *out);

#endif
