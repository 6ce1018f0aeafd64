/*
 * definitions.h - writes definitions (stacks, modules, code objects, strings, facts) to the trace's
 * definition chunks. Lock-free, any thread, signal-safe. Write a definition before an event uses
 * its id. After a fork the child's trace is empty: every table of ids starts afresh.
 */
#ifndef SHIM_DEFINITIONS_H
#define SHIM_DEFINITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "whyoom/trace.h"

/* Write a definition; the body is complete and is copied. False: no room, which is counted. */
bool definitions_write(enum trace_def_kind kind, const void *body, size_t bytes);

/*
 * How much room is left for definitions, which are never replaced. Where checkpoints replace old
 * chunks, definitions must leave room for weeks: from a quarter of the budget on, new stacks are
 * written in brief; from a third on, where no new code is defined either, in the briefest form;
 * from three eighths on nothing new is defined, and definitions_write() returns false and counts
 * that in the header.
 */
enum definitions_room {
	DEFINITIONS_AMPLE,
	DEFINITIONS_BRIEF,
	DEFINITIONS_BRIEFEST,
	DEFINITIONS_NONE
};
enum definitions_room definitions_room(void);
/* Count in the header a stack in brief form, or a definition left out for want of room. */
void definitions_count_brief(void);
void definitions_count_untold(void);

/* Return the id of a string and define it at first use; 0: no room. Not for hot paths. */
uint32_t definitions_string(const char *text);

/* Write a fact about the process. */
void definitions_info(const char *key, const char *value);
/* INFO whose value may hold NULs. */
void definitions_info_bytes(const char *key, const char *value, size_t bytes);

/* In the child of a fork: its file has no definitions yet. */
void definitions_forked(void);

#endif
