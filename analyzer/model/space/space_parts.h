/* space_parts.h - what the files of struct spaces share among themselves. */
#ifndef ANALYZER_MODEL_SPACE_PARTS_H
#define ANALYZER_MODEL_SPACE_PARTS_H

#include "model/space/space.h"

#define LAYOUT_BLOCK 0u
#define LAYOUT_MAPPING 1u
/* A larger block fits no device: damage. */
#define SPACE_SIZE_MAX (1ull << 56)

/* space_blocks.c: the blocks, by address, by handle, by context, and handles' mappings. */
int space_on_alloc(struct spaces *s, struct space *sp, const struct event *e);
int space_on_free(struct spaces *s, struct space *sp, const struct event *e);
int space_on_unfree(struct spaces *s, struct space *sp, const struct event *e);
int space_on_clear(struct spaces *s, struct space *sp, const struct event *e);
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
/* True if the event's thread captures a graph. */
bool space_is_captured(const struct spaces *s, const struct event *e);
int space_on_call(struct spaces *s, struct space *sp, const struct event *e);

/* space_failure.c: refused requests. */
void space_on_failed(struct spaces *s, struct space *sp, const struct event *e);
/* Call after any event but a failure: settle the latest failure if the program got over it. */
void space_note_failure(struct spaces *s, const struct space *sp, const struct event *e);
/* Count bytes that were allocated and freed in a period that a checkpoint replaced. */
void space_failure_freed_stats(struct spaces *s, const struct space *sp, uint64_t bytes);

#endif
