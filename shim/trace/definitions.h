/*
 * definitions.h - writes definitions (stacks, modules, code objects, facts) to the trace's
 * definition chunks. Lock-free, any thread, signal-safe. A definition must be written before an
 * event uses its id. After fork the child's trace is empty: every table of ids starts afresh
 * (lifecycle.c calls each module's *_fork_child()).
 */
#ifndef SHIM_DEFS_H
#define SHIM_DEFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "whyoom/trace.h"

/* The body is complete and is copied. False: no room; counted as TRACE_DROP_DEFINITION. */
bool definition_write(enum trace_def_kind kind, const void *body, size_t bytes);

/*
 * Definitions are never replaced. Where old chunks are (checkpoint.h), they are to leave the others
 * room for weeks: from a quarter of the budget on, whose stacks are new tells them in brief, from a
 * third on, where there is no new code any more, in as few words as can be, and from three eighths
 * on there are no new ones. definition_write() is false then, and counts it in the header.
 */
enum definitions_room {
	DEFINITIONS_AMPLE,
	DEFINITIONS_BRIEF,
	DEFINITIONS_BRIEFEST,
	DEFINITIONS_NONE
};
enum definitions_room definitions_room(void);
/* In the header: a stack was told in brief, or, for want of room, something is not told at all. */
void definitions_count_brief(void);
void definitions_count_untold(void);

/* The id of a string, written at first sight; 0 when there was no room. Not for hot paths. */
uint32_t definition_string(const char *text);

/* INFO, a fact about the process. */
void definition_info(const char *key, const char *value);
/* INFO whose value may hold NULs. */
void definition_info_bytes(const char *key, const char *value, size_t bytes);

/* In the child of a fork: its file has no definitions yet. */
void definitions_fork_child(void);

#endif
