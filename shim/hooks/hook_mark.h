/*
 * hook_mark.h - marks, for all that they come from: mark.h's functions and NVTX. Any thread, any
 * moment.
 */
#ifndef SHIM_HOOK_MARK_H
#define SHIM_HOOK_MARK_H

#include <stdint.h>

#include "shim.h"

#define MARK_NAME_BYTES 128u /* what is kept of a name, with its end */

struct mark {
	enum trace_mark phase;
	enum trace_mark_what what;
	uint64_t id;
	uint32_t name, domain; /* numbers of names, 0: none */
	uint64_t tokens; /* of a LENGTH */
};

/* The number of a name of the program's, in this process and its forks; 0: NULL, or there are too
 * many. Copied. */
uint32_t mark_name(const char *name);

/* No other mark of this process has it; from 2^48 on. */
uint64_t mark_next_id(void);

/* Records it, errno kept. `caller`: the return address of what the program called. */
void mark_say(const void *caller, const struct mark *m, const struct stack_start *start);

/* In the child of a fork: names are written anew. */
void hook_mark_forked(void);

#endif
