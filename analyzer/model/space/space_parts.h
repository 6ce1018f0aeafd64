/* space_parts.h - what the files of struct spaces share among themselves. */
#ifndef ANALYZER_MODEL_SPACE_PARTS_H
#define ANALYZER_MODEL_SPACE_PARTS_H

#include "model/space/space.h"

#define LAYOUT_BLOCK 0u
#define LAYOUT_MAPPING 1u
/* A larger block fits no device: damage. */
#define SPACE_SIZE_MAX (1ull << 56)

struct space_undo {
	struct space_block copy;
	uint32_t index, thread;
	bool valid;
};
#define SPACE_UNDO 256u
#define SPACE_LATE 64u

/* A release that may come late for something that an acquisition found in its way. */
enum space_late_kind { LATE_BLOCK, LATE_HANDLE, LATE_MAPPING };
struct space_late {
	uint64_t start, end, until_ns;
	uint32_t thread; /* the acquisition's */
	enum space_late_kind kind;
	bool valid;
};

struct space_unmapped {
	struct range piece;
	struct space_block copy;
};

/* space_blocks.c: the blocks, by address, by handle, by context. */

/* Create a record, found by its address or handle. The space's model counts an acquisition, or,
 * with `again`, a release taken back. 0 or -ENOMEM. */
int space_block_new(struct spaces *s, const struct space_block *like, bool again, uint32_t *index);
/* Release a block: tell the space's model and recycle the record. 0 or -ENOMEM. */
int space_block_drop(struct spaces *s, uint32_t index);
/* Clear [start, end) in the layout: shorten mappings, drop blocks. */
int space_clear_range(struct spaces *s, uint64_t start, uint64_t end);
/* Find the block that lives at that address or under that handle, or SPACE_NONE. */
uint32_t space_block_at(
    const struct spaces *s, const struct space *sp, uint64_t address, bool handle);

int space_on_alloc(struct spaces *s, struct space *sp, const struct event *e);
int space_on_free(struct spaces *s, struct space *sp, const struct event *e);
int space_on_unfree(struct spaces *s, struct space *sp, const struct event *e);
int space_on_clear(struct spaces *s, struct space *sp, const struct event *e);

/* space_late.c: releases that other threads' clocks put behind the next acquisition. */
void space_late_expect(struct spaces *s, uint64_t start, uint64_t end, enum space_late_kind kind);
/* True when the release is one of those, and has been applied already. */
bool space_late_take(struct spaces *s, const struct event *e, enum space_late_kind kind);

/* space_mapping.c: handles' memory at addresses. */
int space_on_map(struct spaces *s, const struct event *e);
int space_on_unmap(struct spaces *s, const struct event *e);
int space_on_ununmap(struct spaces *s, const struct event *e);

/* space_level.c: levels from the driver and from PyTorch. */
int space_take_levels(struct spaces *s, struct space *sp, const struct event *e);
/* The device's latest sample from outside. */
void space_take_outside(struct spaces *s, struct space *cuda);
/* All contexts of the device are gone. */
void space_forget_contexts(struct space *cuda);
void space_forget_pool(struct space *sp, uint64_t object);
int space_on_call(struct spaces *s, struct space *sp, const struct event *e);

/* space_failure.c: refused requests. */
void space_on_failed(struct spaces *s, struct space *sp, const struct event *e);
/* Call after any event but a failure: settle the latest failure if the program got over it. */
void space_note_failure(struct spaces *s, const struct space *sp, const struct event *e);
/* Count bytes that were allocated and freed in a period that a checkpoint replaced. */
void space_failure_freed_stats(struct spaces *s, const struct space *sp, uint64_t bytes);

#endif
