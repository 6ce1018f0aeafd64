/*
 * under.h - a trace written by the core and read back, for unit tests.
 */
#ifndef UNIT_SHIM_UNDER_H
#define UNIT_SHIM_UNDER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "whyoom/trace.h"

#define UNDER_FIELDS 24

struct under_event {
	uint32_t kind, flags, thread, fields;
	uint64_t ticks, field[UNDER_FIELDS]; /* address, size, stack of compact ones */
	bool checkpoint; /* it stands in the checkpoint */
};

struct under_trace {
	const uint8_t *base;
	uint64_t bytes, count, side;
	unsigned errors;
	uint64_t expected; /* ALLOCs whose stack was not written because it was expected */
	unsigned chunks[5]; /* by type */
	struct under_event *events;
	uint32_t checkpoint, checkpoint_parts; /* the one that counts: its number; 0: none */
	uint32_t parts; /* of it that are there, and sealed */
	uint64_t checkpoint_ticks;
};

extern uint32_t under_stack; /* what stacks are now */
extern uint64_t under_task; /* and the thread's task */
extern bool under_interrupted; /* and whether they have a signal's frame */

int under_begin(uint64_t max_trace);
const char *under_directory(void);
const char *under_path(void);
struct under_trace *under_read(void);
void under_free(struct under_trace *t);
uint64_t under_count(const struct under_trace *t, uint32_t kind);
void under_end(void);

#endif
