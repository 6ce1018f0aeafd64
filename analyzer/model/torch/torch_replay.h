/*
 * torch_replay.h - the blocks that PyTorch asked for on one device, asked for once more of the
 * model of its caching allocator: unchanged, to see whether the model makes the segments that the
 * record shows; or with a change, to see whether every request would have been granted.
 *
 * A change may rewrite each request (keep it, drop it, resize it, release it early), the
 * allocator's settings and the device's memory. Any number of changes are tried in the same pass.
 * One thread. Memory grows with live blocks and with segments, not with events.
 */
#ifndef ANALYZER_MODEL_TORCH_REPLAY_H
#define ANALYZER_MODEL_TORCH_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/feed.h"
#include "model/torch/caching_settings.h"

/* One request, as it was recorded. */
struct torch_block {
	uint64_t serial; /* counts the device's requests, from 1 */
	uint64_t time_ns;
	uint64_t address; /* 0: refused */
	uint64_t size; /* of the block, rounded by PyTorch */
	uint32_t stack, thread;
	bool refused;
};

/* How to rewrite the stream of requests. A function that is NULL leaves things as recorded. size()
 * and life() are called once for each request, in this order, as the record has them. */
struct torch_rewrite {
	void *arg;
	/* The bytes to ask for in its place; 0: do not ask at all. */
	uint64_t (*size)(void *arg, const struct torch_block *b);
	/* The block is released so many ns after its request, if it was not before. UINT64_MAX:
	 * only when the record says so. */
	uint64_t (*life)(void *arg, const struct torch_block *b);
	/* What was refused in the record is granted: the bytes that its work goes on to ask for, at
	 * once, which the record does not have. */
	uint64_t (*further)(void *arg, const struct torch_block *b);
	/* A block of the replay is gone: where it had been asked for, and its size there. */
	void (*released)(void *arg, uint32_t stack, uint64_t size);
};

/* Requests that come later than they were recorded: a block is asked for, and released, so many ns
 * later than in the record (0: as it was), each at its time among the others. What is due after the
 * record's end comes then. */
struct torch_shift {
	void *arg;
	/* *end: the ns after it was asked for at which its work ends; UINT64_MAX at first. */
	uint64_t (*delay)(void *arg, const struct torch_block *b, uint64_t *end);
	/* That time has come: is it released, if it was not before? By serial. */
	bool (*ends)(void *arg, uint64_t serial);
	/* What the record was refused is granted. */
	void (*granted)(void *arg, uint64_t serial);
};

/* What a trial puts to the allocator, in order, so that another one can be asked the same. */
enum torch_ask_kind {
	TORCH_ASK_BLOCK, /* serial, address (0: the record was refused), size, pool, stream */
	TORCH_ASK_RELEASE, /* address */
	TORCH_ASK_FLUSH, /* torch.cuda.empty_cache() */
	TORCH_ASK_RETIRE, /* the graphs of `pool` are gone */
};
struct torch_ask {
	enum torch_ask_kind kind;
	uint64_t serial, address, size, pool, stream;
	uint64_t room; /* that the device has for segments now */
};

struct torch_change {
	const struct caching_settings *settings; /* NULL: as recorded */
	uint64_t memory; /* of the device in bytes; 0: as recorded */
	uint64_t given_back; /* by other processes, of what they held */
	struct torch_rewrite rewrite;
	struct torch_shift shift;
	/* Is told all that is asked, also after the refusal at which the replay stops, but not what
	 * `rewrite` does. May be NULL. */
	void (*told)(void *arg, const struct torch_ask *ask);
	void *told_arg;
};

/* The first request that was granted in the record and is refused in the replay; if there is
 * none, the last one that was refused in both. */
struct torch_refusal {
	struct torch_block block;
	uint64_t size; /* asked for in the replay */
	uint64_t segment; /* asked of the device */
	uint64_t reserved, allocated; /* by the allocator then */
	uint64_t idle; /* of reserved: whole segments, or pages, without a block */
	uint64_t largest_hole; /* a free piece in the request's pool */
	uint64_t room; /* bytes that the device had left */
};

struct torch_outcome {
	/* Nothing is refused that was granted in the record, and the last refusal of the record,
	 * if there is one, is granted. A replay stops at the first new refusal. */
	bool fits;
	uint64_t requests; /* that were made in the replay */
	uint64_t recorded_refusals, granted_refusals; /* in the record; of them, granted now */
	bool refused;
	struct torch_refusal refusal; /* when refused */
	/* Fits: bytes that were always left, cached segments without a block counted as left. Does
	 * not fit: negative, the bytes that were wanting at the refusal. */
	int64_t headroom;
	uint64_t peak_allocated, peak_reserved;
	uint64_t end_allocated, end_reserved;
	/* The device: its size, 0: not known; and what may be reserved of it, UINT64_MAX: all. */
	uint64_t memory, allowed;
};

enum torch_match_kind {
	TORCH_MATCH_NONE, /* no block was recorded, or there is no such space */
	TORCH_MATCH_IDENTICAL, /* the same segments in the same order, and the same reserved bytes
				* at each event */
	TORCH_MATCH_WITHIN, /* reserved bytes never more than 1 % apart */
	TORCH_MATCH_NOT,
};

/* Does the model make what the record shows? */
struct torch_match {
	enum torch_match_kind kind;
	uint32_t streams; /* as far as blocks show them: sets of segments that share no holes */
	uint64_t requests, segments; /* recorded; segments: those and pages, ever made */
	uint64_t refused; /* serial of the last request that the record was refused, 0: none was */
	uint64_t compared; /* events at which reserved bytes are known */
	double deviation; /* the largest share by which reserved bytes differ */
	/* The first difference, unless identical. */
	struct {
		uint64_t time_ns, request;
		uint64_t recorded, modelled; /* bytes: of a segment, or reserved */
		const char *what; /* "segment", "reserved" */
	} first;
	const char *doubt; /* a setting that the model does not know, or NULL */
};

/* All changes in two passes over the feed, which is rewound. `device` is N of torch:N. 0, or
 * negative with err. `outcomes` has a place for each change; match may be NULL. */
int torch_replay(struct feed feed, uint32_t device, const struct torch_change *changes,
    size_t count, struct torch_outcome *outcomes, struct torch_match *match, struct err *err);

/* As the process' environment has them, or NULL. */
const char *torch_replay_conf(struct feed feed);
/* The settings that the process ran with, as far as its environment tells. */
void torch_replay_settings(struct feed feed, struct caching_settings *out);

#endif
