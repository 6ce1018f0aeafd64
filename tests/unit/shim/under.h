/* under.h - writes a trace with the core and reads it back, for unit tests. */
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
	uint64_t ticks, field[UNDER_FIELDS]; /* address, size and stack of compact events */
	bool checkpoint; /* read from the checkpoint */
};

struct under_trace {
	const uint8_t *base;
	uint64_t bytes, count, side;
	unsigned errors;
	uint64_t expected; /* ALLOCs whose stack was expected and not written */
	unsigned chunks[5]; /* by type */
	struct under_event *events;
	/* the number of the valid checkpoint, 0: none; and its parts */
	uint32_t checkpoint, checkpoint_parts;
	uint32_t parts; /* its sealed parts in the file */
	uint64_t checkpoint_ticks;
};

extern uint32_t under_stack; /* what captures return */
extern uint64_t under_task; /* the thread's task */
extern bool under_interrupted; /* captures contain a signal frame */

int under_begin(uint64_t max_trace);
const char *under_directory(void);
const char *under_path(void);
struct under_trace *under_read(void);
void under_free(struct under_trace *t);
uint64_t under_count(const struct under_trace *t, uint32_t kind);
void under_end(void);

#endif
