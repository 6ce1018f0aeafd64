/*
 * checkpoint.h - chooses the checkpoint that counts, and drops the events that it replaces. An
 * incomplete checkpoint is never used in part: blocks that it lacks would look released.
 */
#ifndef ANALYZER_TRACE_CHECKPOINT_H
#define ANALYZER_TRACE_CHECKPOINT_H

#include "trace/cursor.h"
#include "trace/stream.h"
#include "trace/trace.h"
#include "util/vec.h"

struct checkpoint_slots {
	struct trace_checkpoint slot[TRACE_CHECKPOINT_SLOTS];
};

/* Read the slots of the header; `c` stands at the first. */
struct checkpoint_slots checkpoint_slots_read(struct cursor *c);
/* The number of the newest finished checkpoint, whole or damaged; 0: none. */
uint32_t checkpoint_newest(const struct checkpoint_slots *slots);

/*
 * Remove from `chunks`, a file's event chunks and parts of checkpoints in any order, the parts
 * that do not count. *floor: events outside the checkpoint count from these ticks on. *until: the
 * ticks up to which events were replaced. Fills *out but for until_ns.
 */
void checkpoint_choose(const struct checkpoint_slots *slots, struct chunk *chunks, size_t *count,
    struct trace_checkpoint_facts *out, uint64_t *floor, uint64_t *until);

#endif
