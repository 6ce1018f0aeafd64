/*
 * space.h - memory beside the host's: the blocks, handles and mappings in each space of a device,
 * pool or framework, the level of each device, and the requests that it refused. A part of the
 * model, fed by model_apply() only; created with the first event of a space.
 *
 * Each space keeps its blocks' history in a model of its own, so that stacks, peaks and call sites
 * are read as the host's are. One thread. Constant or logarithmic work for an event; a bulk release
 * costs as much as the blocks that it releases.
 */
#ifndef ANALYZER_MODEL_SPACE_H
#define ANALYZER_MODEL_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/model.h"
#include "util/map.h"
#include "util/ranges.h"
#include "util/vec.h"

enum space_kind {
	SPACE_OTHER, /* a name of a newer version */
	SPACE_CUDA, /* the driver's memory on a device */
	SPACE_POOL, /* blocks of stream-ordered pools */
	SPACE_GRAPH, /* memory nodes of graphs */
	SPACE_TORCH, /* PyTorch's blocks, inside segments of CUDA or POOL */
	SPACE_MANAGED,
	SPACE_PINNED,
	SPACE_FOREIGN, /* other processes' memory, mapped or imported here */
	SPACE_VA, /* addresses without memory */
};

#define SPACES_MAX 256u /* in a process; further names are counted as unknown */
#define SPACE_NONE UINT32_MAX

/* A live block, or a handle that has references or mappings. */
struct space_block {
	struct block block; /* a handle's address is its value */
	uint64_t context, stream;
	uint64_t mapped; /* a handle's mapped bytes */
	uint32_t space; /* index */
	uint32_t flags; /* TRACE_SPACE_* */
	uint32_t references; /* to a handle */
	uint32_t torch; /* 1 + the PyTorch space that has had blocks in it */
	uint32_t next, prev; /* 1 + neighbour of the same space and context */
	bool used;
	bool captured; /* acquired while its thread captured a graph, which needs it */
};

/* Captures of work into graphs. What a graph uses is allocated with it and stays with it. */
#define CAPTURES_MAX 16u /* at once */
struct space_captures {
	uint64_t count;
	uint64_t launches; /* of graphs between the first capture's end and the last one's begin */
	uint64_t first_launches, first_ns;
	uint32_t threads[CAPTURES_MAX], open; /* threads that capture */
};

/* A device's memory as the driver or an outside observer counts it, against the events' sum. */
struct device_sample {
	uint64_t time_ns, free, total, explained;
	uint64_t others, own; /* used by other processes; by this process */
	bool others_known, own_known;
	/* own - explained; if own is unknown, total - free - others - explained */
	int64_t unattributed;
};
#define DEVICE_SAMPLES 256u
#define DEVICES_MAX 16u /* observed from outside */

struct pool_level {
	uint64_t object, reserved, allocated;
};

struct space {
	uint32_t index; /* into struct spaces */
	enum space_kind kind;
	uint32_t device; /* of CUDA, POOL, GRAPH, TORCH */
	char name[32];
	struct model *model; /* live, peak, stacks and the newest levels of this space */
	uint64_t peak_event; /* struct model's `others` at the peak; 0: none */
	struct map own; /* TORCH, VA, OTHER: address to 1 + block */
	struct map contexts; /* context to 1 + its first block */
	uint64_t mapped_handles; /* handles with mappings */

	/* CUDA: */
	struct device_sample samples[DEVICE_SAMPLES]; /* by time, thinned out when full */
	uint32_t sample_count, sample_stride, sample_skipped;
	struct device_sample last_sample; /* the driver's; total 0: never asked */
	int64_t context_bytes, module_bytes; /* changes of the free memory by such calls */
	/* Bytes that no event explained when the first context existed: the context's own bytes and
	 * those of other processes. `others`: the known part of the latter. */
	struct {
		bool known, others_known;
		uint64_t unexplained, others;
	} first_context;
	/* Of a process that was attached to: what no event explained when the device was first
	 * looked at, less what was known as other processes'. */
	struct {
		bool known;
		uint64_t bytes;
	} before;
	/* The most memory that this process used, seen from outside, beyond what events explain. */
	bool overhead_known;
	uint64_t overhead;
	/* POOL, GRAPH: each pool's latest level. */
	VEC(struct pool_level) pools;
	struct map pool_index; /* object to 1 + index */
};

/* A refused request, with all its attempts. */
struct device_failure {
	uint64_t time_ns, event; /* of the last attempt at the innermost level; event: `others` */
	uint64_t last_ns;
	uint32_t space; /* index of the innermost allocator that refused */
	uint32_t below; /* index of the level below, if it refused, too; else SPACE_NONE */
	uint64_t size, segment; /* of the block; of the request to the level below, 0: none */
	uint64_t least; /* smallest size that was refused after the block was halved */
	uint32_t stack, thread, retry, flags;
	int32_t result;
	const char *api, *label;
	uint64_t count; /* refused attempts, echoes included */
	uint64_t live_bytes, acquired; /* of the space at that time; acquired: blocks */
	uint64_t acquired_bytes;
	uint64_t summed_bytes; /* in later periods that a checkpoint replaced */
	uint64_t reserved, allocated, free, total;
	bool reserved_known, free_known;
	bool dipped; /* at least as many bytes as requested were released since */
	bool since_replaced; /* live_bytes and acquired are of the end of a replaced period */
	bool recovered, retried, settled; /* as in struct failure */
};
#define DEVICE_FAILURES 32u

/* A release that may be taken back. */
struct space_undo {
	struct space_block copy;
	uint32_t index, thread;
	bool valid;
};
#define SPACE_UNDO 256u

/* A release that may come late for something that an acquisition found in its way. */
enum space_late_kind { LATE_BLOCK, LATE_HANDLE, LATE_MAPPING };
struct space_late {
	uint64_t start, end, until_ns;
	uint32_t thread; /* the acquisition's */
	enum space_late_kind kind;
	bool valid;
};
#define SPACE_LATE 64u

/* A piece of an unmapping that may be taken back. */
struct space_unmapped {
	struct range piece;
	struct space_block copy;
};

struct spaces {
	struct feed feed;
	struct space_witness witness; /* the host's model's */
	struct space *list[SPACES_MAX];
	uint32_t count;
	struct map ids; /* the trace's id to 1 + index */
	uint32_t last_id, last_index; /* of the latest look-up */

	VEC(struct space_block *) chunks; /* blocks by index */
	uint32_t used, spare; /* spare: 1 + the first free block, linked by .next */
	uint64_t serial;

	struct map addresses, handles; /* the driver's: to 1 + block */
	struct ranges
	    layout; /* of the driver's addresses: blocks (kind 0), mappings (1); serial: block */

	struct space_undo undo[SPACE_UNDO]; /* a ring of recent releases, for UNFREE */
	uint32_t undo_at;
	VEC(struct space_unmapped) unmapped; /* pieces of the latest SPACE_UNMAP */
	uint64_t unmapped_start, unmapped_end;
	uint32_t unmapped_thread;
	struct device_sample outside[DEVICES_MAX]; /* the latest of each device; total 0: none */

	struct space_late late[SPACE_LATE]; /* a ring */
	uint32_t late_at;
	uint64_t late_until_ns; /* no late release is expected afterwards */

	struct device_failure failures[DEVICE_FAILURES]; /* the last entry is the latest */
	size_t failure_count;
	uint64_t failure_total, retried_total;
	uint64_t other_results; /* attempts that failed for other reasons than memory */

	VEC(uint32_t) hit; /* scratch for callbacks */
	uint64_t now_ns, now_event;
	struct space_captures captures;
	uint64_t replaced_until_ns; /* end of the latest period that a checkpoint replaced */
	uint32_t now_thread;

	uint64_t unmatched, repairs, unknown;
};

/* Apply an event of a space other than the host's. 0 or -ENOMEM. */
int spaces_apply(struct model *m, const struct event *e);
/* Apply EV_OUTSIDE. It creates no space: a device that the process does not use is not its own. */
int spaces_outside(struct model *m, const struct event *e);
void spaces_free(struct spaces *s); /* accepts NULL */
/* Call after the last event. `badly`: a signal or a non-zero status ended the process. */
void spaces_finish(struct spaces *s, bool badly); /* accepts NULL */
/* Check the invariants; abort when one is broken. */
void spaces_check(const struct spaces *s);

struct space *spaces_find(const struct spaces *s, const char *name); /* s may be NULL */
/* Find the space of that kind for a device, or NULL. */
struct space *spaces_of(const struct spaces *s, enum space_kind kind, uint32_t device);

/* Return the latest request that was refused for good, or NULL. s may be NULL. */
const struct device_failure *spaces_failure(const struct spaces *s);

/* Compute what other processes hold of the device now: what was observed from outside, plus the
 * later growth that no event explains. False: unknown. `cuda` is the device's space. */
bool spaces_others(const struct spaces *s, const struct space *cuda, uint64_t *bytes);

/* Return the device's bytes that events explain: blocks, handles, and what pools hold. */
uint64_t spaces_explained(const struct spaces *s, uint32_t device);

static inline struct space_block *spaces_block(const struct spaces *s, uint32_t index)
{
	return &s->chunks.items[index >> 10][index & 1023];
}

#endif
