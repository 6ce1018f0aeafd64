/*
 * space.h - memory beside the host's: what lies in each space of a device, pool or framework, under
 * which handles and mappings, how full its device was, and which requests it refused. Part of the
 * model, fed by model_apply() only; created with the first event of a space.
 *
 * Each space keeps the history of its blocks in a model of its own, so that stacks, peaks and call
 * sites are read as those of the host. One thread. Constant or logarithmic work for an event, but
 * for bulk releases, which cost what they release.
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
	SPACE_CUDA, /* what the driver gave on a device */
	SPACE_POOL, /* stream-ordered pools' blocks */
	SPACE_GRAPH, /* graphs' memory nodes */
	SPACE_TORCH, /* PyTorch's blocks, inside segments of CUDA or POOL */
	SPACE_MANAGED,
	SPACE_PINNED,
	SPACE_FOREIGN, /* of others, mapped or imported here */
	SPACE_VA, /* addresses without memory */
};

#define SPACES_MAX 256u /* in a process; what names a further one is counted as unknown */
#define SPACE_NONE UINT32_MAX

/* A live block, or a handle that has references or mappings. */
struct space_block {
	struct block block; /* address: of a handle, its value */
	uint64_t context, stream;
	uint64_t mapped; /* a handle's bytes that are visible somewhere */
	uint32_t space; /* index */
	uint32_t flags; /* TRACE_SPACE_* */
	uint32_t references; /* a handle's */
	uint32_t torch; /* 1 + the space of PyTorch's that has had blocks in it */
	uint32_t next, prev; /* 1 + those of the same space and context */
	bool used;
};

/* What the driver, or an observer outside of the process, said of a device's memory, against what
 * the events explain. */
struct device_sample {
	uint64_t time_ns, free, total, explained;
	uint64_t others, own; /* used by other processes, and by this one */
	bool others_known, own_known;
	/* own - explained, or where that is not known, total - free - others - explained */
	int64_t unattributed;
};
#define DEVICE_SAMPLES 256u
#define DEVICES_MAX 16u /* that are looked at from outside */

struct pool_level {
	uint64_t object, reserved, allocated;
};

struct space {
	uint32_t index; /* in struct spaces */
	enum space_kind kind;
	uint32_t device; /* of CUDA, POOL, GRAPH, TORCH */
	char name[32];
	struct model *model; /* live, peak, stacks and the newest levels of this space */
	uint64_t peak_event; /* struct model's `others` at the high-water mark, 0: none */
	uint64_t live_handles; /* handles, and of them those that only a mapping keeps */
	struct map own; /* TORCH, VA, OTHER: address to 1 + block */
	struct map contexts; /* context to 1 + its first block */
	uint64_t mapped_handles;

	/* CUDA: */
	struct device_sample samples[DEVICE_SAMPLES]; /* by time, thinned out when full */
	uint32_t sample_count, sample_stride, sample_skipped;
	struct device_sample last_sample; /* of the driver's; total 0: never asked */
	int64_t context_bytes, module_bytes; /* by which calls changed the free memory */
	/* What nothing explained when the first context was there: its own, and other processes',
	 * of which `others` were known then. */
	struct {
		bool known, others_known;
		uint64_t unexplained, others;
	} first_context;
	/* The most that this process was seen to use, from outside, beyond what events explain. */
	bool overhead_known;
	uint64_t overhead;
	/* POOL, GRAPH: what each pool last said of itself. */
	VEC(struct pool_level) pools;
	struct map pool_index; /* object to 1 + index */
};

/* A request that was refused, with all attempts at it. */
struct device_failure {
	uint64_t time_ns, event; /* of the last attempt at the innermost level; `others` */
	uint64_t last_ns;
	uint32_t space; /* index: the innermost allocator that refused */
	uint32_t below; /* index: the level below that refused too, or SPACE_NONE */
	uint64_t size, segment; /* the block; what was asked of the level below, 0: nothing */
	uint64_t least; /* of blocks that were halved, and refused again */
	uint32_t stack, thread, retry, flags;
	int32_t result;
	const char *api, *label;
	uint64_t count; /* refused attempts, echoes included */
	uint64_t live_bytes, acquired; /* of the space, then; acquired: blocks */
	uint64_t acquired_bytes;
	uint64_t summed_bytes; /* in periods after its own that a checkpoint took the place of */
	uint64_t reserved, allocated, free, total;
	bool reserved_known, free_known;
	bool dipped; /* since then at least as much as was asked for has been released */
	bool since_replaced; /* "then" is the end of what a checkpoint took the place of */
	bool recovered, retried, settled; /* as in struct failure */
	uint64_t recovered_ns;
};
#define DEVICE_FAILURES 32u

struct spaces {
	struct feed feed;
	struct space *list[SPACES_MAX];
	uint32_t count;
	struct map ids; /* the trace's id to 1 + index */
	uint32_t last_id, last_index; /* of the latest look-up */

	struct space_block **chunks; /* blocks by index */
	size_t chunk_count, chunk_room;
	uint32_t used, spare; /* spare: 1 + the first free one, listed by .next */
	uint64_t serial;

	struct map addresses, handles; /* of the driver: to 1 + block */
	struct ranges
	    layout; /* of its addresses: blocks (kind 0) and mappings (1), serial: block */

	struct space_undo *undo; /* recent releases, for UNFREE */
	uint32_t undo_at;
	struct space_unmapped *unmapped; /* pieces of the latest SPACE_UNMAP */
	size_t unmapped_count, unmapped_room;
	uint64_t unmapped_start, unmapped_end;
	uint32_t unmapped_thread;
	struct device_sample outside[DEVICES_MAX]; /* the latest of each; total 0: none */

	struct space_late *late; /* a ring of SPACE_LATE */
	uint32_t late_at;
	uint64_t late_until_ns; /* none is waited for after this */

	struct device_failure failures[DEVICE_FAILURES]; /* the last entry is the latest */
	size_t failure_count;
	uint64_t failure_total, retried_total;
	uint64_t other_results; /* attempts that failed, but not for want of memory */

	/* Scratch, and what went wrong in a callback. */
	VEC(uint32_t) hit;
	int error;
	uint64_t now_ns, now_event;
	uint64_t replaced_until_ns; /* end of the latest period that a checkpoint told of so far */
	uint32_t now_thread;

	uint64_t unmatched, repairs, unknown;
};

/* 0 or -ENOMEM. Events of other kinds, or of the host's space, must not come here. */
int spaces_apply(struct model *m, const struct event *e);
/* The same for EV_OUTSIDE, which creates no space: a device that the process does not use is not
 * its own. */
int spaces_outside(struct model *m, const struct event *e);
void spaces_free(struct spaces *s); /* accepts NULL */
/* After the last event; `badly`: the process ended by a signal or with a status that is not 0. */
void spaces_finish(struct spaces *s, bool badly); /* accepts NULL */
/* Check the invariants; abort when one is broken. */
void spaces_check(const struct spaces *s);

struct space *spaces_find(const struct spaces *s, const char *name); /* s may be NULL */
/* The space of that kind for a device, or NULL. */
struct space *spaces_of(const struct spaces *s, enum space_kind kind, uint32_t device);

/* The latest request that was refused for good, or NULL; s may be NULL. */
const struct device_failure *spaces_failure(const struct spaces *s);

/*
 * What other processes hold of the device now: what was seen from outside, and the growth since
 * then that no event explains. False when nothing is known. `cuda` is the device's space.
 */
bool spaces_others(const struct spaces *s, const struct space *cuda, uint64_t *bytes);

/* Bytes of the device that the events explain: blocks, handles, what pools hold. */
uint64_t spaces_explained(const struct spaces *s, uint32_t device);

static inline struct space_block *spaces_block(const struct spaces *s, uint32_t index)
{
	return &s->chunks[index >> 10][index & 1023];
}

#endif
