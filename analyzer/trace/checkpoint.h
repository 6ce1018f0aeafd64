/*
 * checkpoint.h - which of a file's checkpoints counts, and what else then does not. A checkpoint
 * took the place of old chunks; those of it that are not whole are never used in part, since what
 * they lack would look released.
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

/* From the header, where its slots begin. */
struct checkpoint_slots checkpoint_slots_read(struct cursor *c);
/* The number of the newest one that was finished, whole or not; 0: none. */
uint32_t checkpoint_newest(const struct checkpoint_slots *slots);

/*
 * `chunks` are a file's event chunks and all parts of checkpoints, in any order: those parts that
 * do not count are taken out. *floor: events outside the checkpoint count from these ticks on.
 * Fills all of *out but until_ns, and *until, its ticks.
 */
void checkpoint_choose(const struct checkpoint_slots *slots, struct chunk *chunks, size_t *count,
    struct trace_checkpoint_facts *out, uint64_t *floor, uint64_t *until);

#endif
